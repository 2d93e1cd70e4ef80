//! Links planted while the tools work: nothing outside is read, listed, found or written.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use crate::bench::Bench;

#[test]
fn a_swapped_directory_leads_nowhere() {
    let bench = Bench::new(&[("dir/inside.txt", "inside word\n"), ("dir/both.txt", "inside word\n")]);
    fs::create_dir(bench.root.join("other")).unwrap();
    for name in ["secret.txt", "both.txt"] {
        fs::write(bench.root.join("other").join(name), "outside word\n").unwrap();
    }
    symlink(bench.root.join("other"), bench.root.join("ws/away")).unwrap();
    let stop = AtomicBool::new(false);
    let (mut seen, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let here = rustix::fs::CWD;
            let (dir, away) = (bench.root.join("ws/dir"), bench.root.join("ws/away"));
            while !stop.load(Ordering::Relaxed) {
                rustix::fs::renameat_with(here, &dir, here, &away, rustix::fs::RenameFlags::EXCHANGE)
                    .unwrap();
                std::thread::yield_now();
            }
        });
        let mut hash = bench_hash("inside word\n");
        let mut content = "inside word\n".to_owned();
        for round in 0..20_000 {
            // On a busy machine the other thread may be late.
            if round > 300 && seen > 0 && refused > 0 {
                break;
            }
            for (tool, input) in [
                ("read_file", json!({"path": "dir/both.txt"})),
                ("search_text", json!({"pattern": "word"})),
                ("search_text", json!({"pattern": "word", "path": "dir"})),
                ("list_files", json!({})),
            ] {
                let result = bench.call(tool, &input);
                let text = result.text_projection();
                assert!(!text.contains("outside word") && !text.contains("secret.txt"), "{tool}: {text}");
                if result.is_error {
                    refused += 1;
                } else if text.contains("inside") {
                    seen += 1;
                }
            }
            let new = format!("inside word {round}\n");
            let written = bench
                .call("write_file", &json!({"path": "dir/both.txt", "content": new, "expectedHash": hash}));
            if written.is_error {
                let text = written.text_projection();
                assert!(!text.contains(&bench_hash("outside word\n")), "{text}");
            } else {
                hash = bench_hash(&new);
                content = new;
            }
        }
        stop.store(true, Ordering::Relaxed);
        assert!(content.starts_with("inside"));
    });
    assert!(seen > 0 && refused > 0, "{seen} {refused}");
    for name in ["secret.txt", "both.txt"] {
        assert_eq!(fs::read(bench.root.join("other").join(name)).unwrap(), b"outside word\n");
    }
    assert_eq!(fs::read_dir(bench.root.join("other")).unwrap().count(), 2);
}

fn bench_hash(content: &str) -> String {
    alisio_protocol::Sha256::of(content.as_bytes()).to_string()
}
