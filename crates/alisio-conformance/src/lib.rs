//! A scripted OpenAI-compatible model server with every fault by name.
