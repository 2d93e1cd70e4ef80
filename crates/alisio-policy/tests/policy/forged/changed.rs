// error: E0616
use alisio_policy::{Permit, Request};

pub fn widen(permit: &mut Permit, request: Request) {
    permit.scope = request.scope;
}
