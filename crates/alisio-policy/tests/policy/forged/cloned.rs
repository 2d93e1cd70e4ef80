// error: E0277
use alisio_policy::Permit;

fn copied<T: Clone>(one: &T) -> T {
    one.clone()
}

pub fn copy(permit: &Permit) -> Permit {
    copied::<Permit>(permit)
}
