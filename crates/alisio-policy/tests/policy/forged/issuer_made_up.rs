// error: E0423
use alisio_policy::Issuer;

pub fn make() -> Issuer {
    Issuer(())
}
