// error: E0451
use alisio_policy::{Permit, Request};

pub fn forge(request: Request) -> Permit {
    Permit { effect: request.effect, scope: request.scope, digest: request.digest }
}
