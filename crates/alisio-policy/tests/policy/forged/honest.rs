use alisio_policy::{Basis, Denial, Issuer, LedgerSink, Permit, Request};

pub fn recorded(issuer: &Issuer, request: Request, basis: Basis, ledger: &dyn LedgerSink) -> Option<Permit> {
    let decided: Result<Basis, Denial> = Ok(basis);
    issuer.record(request, decided, ledger).ok()?.ok()
}

pub fn used(permit: Permit) {
    spend(permit);
}

fn spend(_: Permit) {}
