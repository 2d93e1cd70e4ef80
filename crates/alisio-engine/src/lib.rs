//! Sessions, runs and turns: streams a model and sends every call through the gate.
