//! Reads a command line as bash does and says what each part would do: programs, files written, hosts, or "unknown".
