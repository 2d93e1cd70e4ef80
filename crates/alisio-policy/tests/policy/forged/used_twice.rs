// error: E0382
use alisio_policy::Permit;

fn spend(_: Permit) {}

pub fn twice(permit: Permit) {
    spend(permit);
    spend(permit);
}
