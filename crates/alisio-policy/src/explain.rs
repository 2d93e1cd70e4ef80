//! Says of one call which rule and which word decided, and what would have to change for the next stricter or looser
//! answer. Each proposal was tried before it is made: it is a rule that, added at the end, gives the other answer.

use serde_json::{Value, json};

use crate::judge::{Call, Judgement, Moment, Outcome};
use crate::rule::{Action, Policy};

/// Why a call is judged as it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The judgement.
    pub judgement: Judgement,
    /// The rule that decided, in a few words.
    pub rule: Option<String>,
    /// The text that it met: a part of the command, or the whole.
    pub word: String,
    /// The smallest change for the next stricter answer; `None` at the strictest.
    pub stricter: Option<String>,
    /// The smallest change for the next looser answer; `None` at the loosest.
    pub looser: Option<String>,
}

impl Policy {
    /// Explains what the policy says of a call.
    pub fn explain(&self, call: Call<'_>, moment: Moment<'_>) -> Explanation {
        let judgement = self.judge(call, moment);
        let word = match judgement.part.and_then(|part| judgement.parts.get(part)) {
            Some(part) => part.text.clone(),
            None => call.subject.target.clone(),
        };
        let rule = judgement.rule.and_then(|index| self.rules.get(index)).map(|rule| rule.summary());
        let stricter = match judgement.outcome {
            Outcome::Allow => Some(self.propose(call, moment, &word, "ask", Outcome::Ask)),
            Outcome::Ask => Some(self.propose(call, moment, &word, "deny", Outcome::Deny)),
            Outcome::Deny => None,
        };
        let looser = match judgement.outcome {
            Outcome::Allow => None,
            Outcome::Ask => Some(self.propose(call, moment, &word, "allow", Outcome::Allow)),
            Outcome::Deny => Some(match self.rules_out(call.tool) {
                Some((_, why)) => format!("no rule helps: {why}"),
                None => self.propose(call, moment, &word, "ask", Outcome::Ask),
            }),
        };
        Explanation { judgement, rule, word, stricter, looser }
    }

    /// Finds a rule that, added at the end, gives the wanted outcome.
    fn propose(
        &self,
        call: Call<'_>,
        moment: Moment<'_>,
        word: &str,
        action: &str,
        wanted: Outcome,
    ) -> String {
        let whole = &call.subject.target;
        // A text with a star or a question mark can't be spelled out; those meet any text in their place.
        let tries: [Value; 3] = [
            json!({"tool": call.tool, "pattern": word, "action": action}),
            json!({"tool": call.tool, "pattern": whole, "action": action}),
            json!({"tool": call.tool, "action": action}),
        ];
        for rule in tries {
            let Ok(added) = Self::parse(&json!({"rules": [&rule]})) else { continue };
            let mut changed = self.clone();
            changed.rules.extend(added.rules);
            if changed.judge(call, moment).outcome == wanted {
                return format!("add this rule at the end: {rule}");
            }
        }
        match self.default {
            Action::Deny if wanted != Outcome::Deny => format!("say \"default\": \"{action}\""),
            _ => "no single rule does it: other parts of the command are judged as strictly".to_owned(),
        }
    }
}
