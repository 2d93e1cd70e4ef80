//! Model services that people usually have: by a key in the environment, or as a server on this machine.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use alisio_store::dirs::Env;

/// How long a local port may take to answer.
const CONNECT_LIMIT: Duration = Duration::from_millis(150);

/// A service that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// What people call it.
    pub name: String,
    /// Its address.
    pub base_url: String,
    /// The variable that holds its key; `None` for a service without one.
    pub api_key_env: Option<String>,
}

/// Variables that hold keys, with the service that they belong to.
const KEYS: [(&str, &str, &str); 6] = [
    ("OPENAI_API_KEY", "OpenAI", "https://api.openai.com/v1"),
    ("OPENROUTER_API_KEY", "OpenRouter", "https://openrouter.ai/api/v1"),
    ("DEEPSEEK_API_KEY", "DeepSeek", "https://api.deepseek.com"),
    ("MISTRAL_API_KEY", "Mistral", "https://api.mistral.ai/v1"),
    ("GROQ_API_KEY", "Groq", "https://api.groq.com/openai/v1"),
    ("XAI_API_KEY", "xAI", "https://api.x.ai/v1"),
];

/// Ports on which local model servers usually listen.
const PORTS: [(u16, &str); 4] =
    [(11434, "Ollama"), (1234, "LM Studio"), (8080, "llama.cpp server"), (8000, "vLLM")];

/// Finds services: keys in the environment first, then local servers.
pub fn find(env: &Env) -> Vec<Service> {
    let mut found = Vec::new();
    let openai_url = env.get("OPENAI_BASE_URL");
    for (variable, name, base_url) in KEYS {
        if env.get(variable).is_some() {
            let own = (variable == "OPENAI_API_KEY").then(|| openai_url.clone()).flatten();
            found.push(Service {
                name: name.to_owned(),
                base_url: own.unwrap_or_else(|| base_url.to_owned()),
                api_key_env: Some(variable.to_owned()),
            });
        }
    }
    for (port, name) in PORTS {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        if TcpStream::connect_timeout(&address, CONNECT_LIMIT).is_ok() {
            found.push(Service {
                name: format!("{name} (port {port})"),
                base_url: format!("http://127.0.0.1:{port}/v1"),
                api_key_env: None,
            });
        }
    }
    found
}

/// Says which variable holds the key of a service that people usually have.
pub fn key_of(base_url: &str) -> Option<&'static str> {
    let base_url = base_url.trim_end_matches('/');
    KEYS.iter().find(|(.., address)| *address == base_url).map(|(variable, ..)| *variable)
}

/// Says which variables and ports were looked at.
pub fn looked_at() -> String {
    let keys: Vec<_> = KEYS.iter().map(|(variable, ..)| *variable).collect();
    let ports: Vec<_> = PORTS.iter().map(|(port, _)| port.to_string()).collect();
    format!("the variables {} and the local ports {}", keys.join(", "), ports.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_service_gets_its_own_key() {
        for (base_url, variable) in [
            ("https://api.openai.com/v1", Some("OPENAI_API_KEY")),
            ("https://api.groq.com/openai/v1", Some("GROQ_API_KEY")),
            ("https://api.groq.com/openai/v1/", Some("GROQ_API_KEY")),
            ("https://api.groq.com.example.invalid/openai/v1", None),
            ("http://127.0.0.1:9000/v1", None),
        ] {
            assert_eq!(key_of(base_url), variable, "{base_url}");
        }
    }
}
