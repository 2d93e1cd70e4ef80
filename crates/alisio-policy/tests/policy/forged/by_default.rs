// error: E0277
use alisio_policy::Permit;

fn made<T: Default>() -> T {
    T::default()
}

pub fn make() -> Permit {
    made::<Permit>()
}
