//! The workspace on real directories: what is resolved, what is opened, what a write keeps, and that no link leads out.
#![expect(clippy::disallowed_methods, reason = "the tests lay out the files that the workspace is tried on")]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use alisio_host::workspace::{
    Access, FileError, Kind, Located, Lookup, Reason, Resolved, Workspace, is_broad, is_leftover,
};
use alisio_policy::{Basis, Issuer, LedgerSink, Permit, RecordError, Request, Scope, Verdict};
use alisio_protocol::{CallId, Effect, Sha256, VerdictSource};
use tempfile::TempDir;

const LOOKUPS: [Lookup; 2] = [Lookup::Kernel, Lookup::Walk];

struct NoLedger;

impl LedgerSink for NoLedger {
    fn record(&self, _: &Verdict) -> Result<(), RecordError> {
        Ok(())
    }
}

fn permit(writes: &Path) -> Permit {
    let request = Request {
        call: CallId::new("call"),
        tool: "write_file".to_owned(),
        effect: Effect::Write,
        scope: Scope { writes: vec![writes.to_owned()], ..Scope::default() },
        outside: Vec::new(),
        digest: Sha256::of(b""),
        subject: alisio_policy::Subject::default(),
    };
    let basis = Basis { source: VerdictSource::Flag, reason: String::new() };
    Issuer::new().record(request, Ok(basis), &NoLedger).unwrap().unwrap()
}

/// A folder with a workspace `ws` in it.
fn folder() -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let root = folder.path().canonicalize().unwrap();
    fs::create_dir_all(root.join("ws/sub/deep")).unwrap();
    fs::create_dir_all(root.join("declared")).unwrap();
    fs::create_dir_all(root.join("spill")).unwrap();
    fs::create_dir_all(root.join("other")).unwrap();
    fs::write(root.join("ws/a.txt"), "a\n").unwrap();
    (folder, root)
}

fn workspace(root: &Path, lookup: Lookup) -> Workspace {
    let workspace = Workspace::open_with(&root.join("ws"), lookup).unwrap();
    let workspace = workspace.with_root(&root.join("declared")).unwrap();
    workspace.with_read_only(&root.join("spill")).unwrap()
}

fn inside(workspace: &Workspace, path: &str) -> Located {
    match workspace.resolve(path, Access::Read).unwrap() {
        Resolved::Inside(located) => located,
        Resolved::Outside(outside) => panic!("{path} is outside: {outside:?}"),
    }
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn paths_resolve_as_the_table_says() {
    let (_folder, root) = folder();
    symlink("a.txt", root.join("ws/link")).unwrap();
    symlink(root.join("other"), root.join("ws/way")).unwrap();
    symlink(root.join("ws"), root.join("alias")).unwrap();
    let at = |path: &str| root.join(path).display().to_string();
    let long = "x".repeat(300);
    let longer = "x/".repeat(2100);
    // Path, access, and either "in PATH-FOR-PEOPLE", "out PATH DIRECTORY" or the reason for the refusal.
    let table: Vec<(String, Access, String)> = vec![
        ("a.txt".into(), Access::Read, "in a.txt".into()),
        (".".into(), Access::Read, "in .".into()),
        ("./sub//deep/../new.txt".into(), Access::Write, "in sub/new.txt".into()),
        ("sub/../../ws/a.txt".into(), Access::Read, "in a.txt".into()),
        ("./~/x".into(), Access::Read, "in ~/x".into()),
        ("~x".into(), Access::Read, "in ~x".into()),
        (at("ws/sub"), Access::Read, "in sub".into()),
        (at("alias/a.txt"), Access::Read, "in a.txt".into()),
        (at("declared/new/b"), Access::Write, format!("in {}", at("declared/new/b"))),
        (at("spill/out"), Access::Read, format!("in {}", at("spill/out"))),
        (at("spill/out"), Access::Write, "read-only".into()),
        ("../other/x".into(), Access::Read, format!("out {} {}", at("other/x"), at("other"))),
        ("../other".into(), Access::Read, format!("out {} {}", at("other"), at("other"))),
        ("/../..".into(), Access::Read, "out / /".into()),
        ("".into(), Access::Read, "bad-path".into()),
        ("a\0b".into(), Access::Read, "bad-path".into()),
        (long, Access::Read, "bad-path".into()),
        (longer, Access::Read, "bad-path".into()),
        ("~".into(), Access::Read, "tilde".into()),
        ("~/x".into(), Access::Read, "tilde".into()),
        ("link".into(), Access::Read, "link".into()),
        ("link".into(), Access::Write, "link".into()),
        ("way/x".into(), Access::Write, "link".into()),
        (at("alias/way/x"), Access::Read, format!("out {} {}", at("other/x"), at("other"))),
        ("a.txt/x".into(), Access::Read, "wrong-kind".into()),
    ];
    for lookup in LOOKUPS {
        let workspace = workspace(&root, lookup);
        for (input, access, expected) in &table {
            let said = match workspace.resolve(input, *access) {
                Ok(Resolved::Inside(located)) => format!("in {}", located.display()),
                Ok(Resolved::Outside(outside)) => {
                    format!("out {} {}", outside.path.display(), outside.directory.display())
                }
                Err(error) => error.reason().as_str().to_owned(),
            };
            assert_eq!(&said, expected, "{input:?} {access:?} {lookup:?}");
        }
    }
}

#[test]
fn a_refused_link_is_named_with_its_target() {
    let (_folder, root) = folder();
    symlink(root.join("other"), root.join("ws/sub/way")).unwrap();
    for lookup in LOOKUPS {
        let workspace = workspace(&root, lookup);
        let error = workspace.resolve("sub/way/secret", Access::Read).unwrap_err();
        let FileError::Link { link, target } = error else { panic!("{error}") };
        assert_eq!((link, target), (root.join("ws/sub/way"), root.join("other")));
        // Planted after the path was resolved.
        let late = inside(&workspace, "late");
        symlink(root.join("other"), root.join("ws/late")).unwrap();
        assert_eq!(late.open_file().unwrap_err().reason(), Reason::Link);
        assert_eq!(late.kind().unwrap_err().reason(), Reason::Link);
        assert_eq!(late.write_new(&permit(late.absolute()), b"x").unwrap_err().reason(), Reason::Exists);
        assert!(late.open_below(&root.join("ws/sub/way")).is_none());
        fs::remove_file(root.join("ws/late")).unwrap();
    }
}

#[test]
fn only_regular_files_are_opened_and_nothing_blocks() {
    let (_folder, root) = folder();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        root.join("ws/fifo"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let _listener = UnixListener::bind(root.join("ws/socket")).unwrap();
    for lookup in LOOKUPS {
        let workspace = workspace(&root, lookup).with_root(Path::new("/dev")).unwrap();
        for (path, reason) in [
            ("fifo", Reason::Special),
            ("socket", Reason::Special),
            ("/dev/null", Reason::Special),
            ("sub", Reason::WrongKind),
            (".", Reason::WrongKind),
            ("gone", Reason::NotFound),
        ] {
            let located = inside(&workspace, path);
            assert_eq!(located.open_file().unwrap_err().reason(), reason, "{path} {lookup:?}");
            let replaced = located.replace(&permit(located.absolute()), &Sha256::of(b""), b"x").unwrap_err();
            assert_eq!(replaced.reason(), reason, "{path} {lookup:?}");
        }
        assert_eq!(inside(&workspace, "a.txt").read(10).unwrap(), b"a\n");
        assert_eq!(inside(&workspace, "a.txt").read(1).unwrap_err().reason(), Reason::TooLarge);
        assert_eq!(inside(&workspace, ".").kind().unwrap(), Kind::Directory);
    }
}

#[test]
fn a_new_file_gets_its_directories_and_never_replaces_one() {
    let (_folder, root) = folder();
    for lookup in LOOKUPS {
        let workspace = workspace(&root, lookup);
        let new = inside(&workspace, "x/y/z.txt");
        let other = permit(&root.join("ws/x/y"));
        assert_eq!(new.write_new(&other, b"1").unwrap_err().reason(), Reason::Permit);
        assert!(!root.join("ws/x").exists());
        new.write_new(&permit(new.absolute()), b"1").unwrap();
        assert_eq!(fs::read(root.join("ws/x/y/z.txt")).unwrap(), b"1");
        assert_eq!(new.write_new(&permit(new.absolute()), b"2").unwrap_err().reason(), Reason::Exists);
        assert_eq!(fs::read(root.join("ws/x/y/z.txt")).unwrap(), b"1");
        assert_eq!(names(&root.join("ws/x/y")), ["z.txt"]);
        // The mode is what the umask leaves, as for any program.
        fs::write(root.join("ws/x/plain"), "").unwrap();
        let mode = |path: &str| fs::metadata(root.join(path)).unwrap().mode();
        assert_eq!(mode("ws/x/y/z.txt"), mode("ws/x/plain"));
        let spilled = inside(&workspace, &root.join("spill/s").display().to_string());
        assert_eq!(
            spilled.write_new(&permit(spilled.absolute()), b"").unwrap_err().reason(),
            Reason::ReadOnly
        );
        fs::remove_dir_all(root.join("ws/x")).unwrap();
    }
}

#[test]
fn a_replaced_file_keeps_what_is_not_its_content() {
    let (_folder, root) = folder();
    let path = root.join("ws/a.txt");
    for lookup in LOOKUPS {
        fs::write(&path, "a\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o4751)).unwrap();
        let is_root = rustix::process::geteuid().is_root();
        if is_root {
            std::os::unix::fs::chown(&path, Some(12345), Some(54321)).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o4751)).unwrap();
        }
        let create = rustix::fs::XattrFlags::empty();
        // Some file systems have no attributes of this kind.
        let has_attributes = rustix::fs::setxattr(&path, "user.note", b"kept", create).is_ok();
        let before = fs::metadata(&path).unwrap();

        let located = inside(&workspace(&root, lookup), "a.txt");
        let old = Sha256::of(b"a\n");
        located.replace(&permit(&path), &old, b"b\n").unwrap();

        let after = fs::metadata(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"b\n");
        assert_eq!(
            (after.mode(), after.uid(), after.gid()),
            (before.mode(), before.uid(), before.gid()),
            "{lookup:?}"
        );
        assert_ne!(after.ino(), before.ino());
        if has_attributes {
            let mut value = [0; 16];
            let length = rustix::fs::getxattr(&path, "user.note", &mut value[..]).unwrap();
            assert_eq!(&value[..length], b"kept");
        }
        let stale = located.replace(&permit(&path), &old, b"c\n").unwrap_err();
        assert!(matches!(stale, FileError::Stale { actual, .. } if actual == Sha256::of(b"b\n")));
        assert_eq!(fs::read(&path).unwrap(), b"b\n");
        assert_eq!(names(&root.join("ws")), ["a.txt", "sub"]);
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_file_that_replacing_would_harm_is_refused() {
    let (_folder, root) = folder();
    let path = root.join("ws/a.txt");
    let old = Sha256::of(b"a\n");
    fs::hard_link(&path, root.join("other/twin")).unwrap();
    let located = inside(&workspace(&root, Lookup::Kernel), "a.txt");
    let error = located.replace(&permit(&path), &old, b"b\n").unwrap_err();
    assert!(matches!(error, FileError::HardLinks { links: 2, .. }), "{error}");
    fs::remove_file(root.join("other/twin")).unwrap();

    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    let written = located.replace(&permit(&path), &old, b"b\n");
    // Root may write what is write-protected.
    match rustix::process::geteuid().is_root() {
        true => written.unwrap(),
        false => assert_eq!(written.unwrap_err().reason(), Reason::Permission),
    }
}

#[test]
fn an_approved_directory_outside_is_the_one_that_was_shown() {
    let (_folder, root) = folder();
    fs::write(root.join("other/x"), "outside\n").unwrap();
    fs::create_dir(root.join("elsewhere")).unwrap();
    fs::write(root.join("elsewhere/x"), "secret\n").unwrap();
    let workspace = workspace(&root, Lookup::Kernel);
    let resolve = || workspace.resolve("../other/x", Access::Write).unwrap();
    let located = resolve().locate().unwrap();
    assert_eq!(located.read(100).unwrap(), b"outside\n");
    assert_eq!(located.display(), root.join("other/x").display().to_string());
    located.replace(&permit(located.absolute()), &Sha256::of(b"outside\n"), b"new\n").unwrap();
    assert_eq!(fs::read(root.join("other/x")).unwrap(), b"new\n");

    let decided = resolve();
    fs::rename(root.join("other"), root.join("moved")).unwrap();
    symlink(root.join("elsewhere"), root.join("other")).unwrap();
    assert_eq!(decided.locate().unwrap_err().reason(), Reason::Link);
    // Opened for good by a person, it is a root like any other.
    let opened = workspace.with_root(&root.join("elsewhere")).unwrap();
    assert_eq!(inside(&opened, "../elsewhere/x").read(100).unwrap(), b"secret\n");
}

#[test]
fn no_link_planted_in_between_leads_out() {
    for lookup in LOOKUPS {
        let (_folder, root) = folder();
        fs::create_dir(root.join("ws/dir")).unwrap();
        fs::write(root.join("ws/dir/file"), "inside").unwrap();
        fs::write(root.join("other/file"), "outside").unwrap();
        symlink(root.join("other"), root.join("ws/away")).unwrap();
        let stop = AtomicBool::new(false);
        let (mut reads, mut writes, mut refused) = (0, 0, 0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (dir, away) = (root.join("ws/dir"), root.join("ws/away"));
                while !stop.load(Ordering::Relaxed) {
                    let here = rustix::fs::CWD;
                    rustix::fs::renameat_with(here, &dir, here, &away, rustix::fs::RenameFlags::EXCHANGE)
                        .unwrap();
                    std::thread::yield_now();
                }
            });
            let workspace = workspace(&root, lookup);
            let (file, dir) = (root.join("ws/dir/file"), root.join("ws/dir"));
            let mut content = b"inside".to_vec();
            for round in 0..200_000_u32 {
                // On a busy machine the other thread may be late.
                if round > 2000 && reads > 0 && writes > 0 && refused > 0 {
                    break;
                }
                let located = match workspace.resolve("dir/file", Access::Write) {
                    Ok(Resolved::Inside(located)) => located,
                    Ok(Resolved::Outside(outside)) => panic!("{outside:?}"),
                    Err(_) => {
                        refused += 1;
                        continue;
                    }
                };
                match located.read(100) {
                    Ok(bytes) => {
                        assert_eq!(bytes, content);
                        reads += 1;
                    }
                    Err(_) => refused += 1,
                }
                if let Some(mut opened) = located.open_below(&file) {
                    let mut bytes = Vec::new();
                    std::io::Read::read_to_end(&mut opened, &mut bytes).unwrap();
                    assert_eq!(bytes, content);
                }
                if round % 8 == 0 {
                    let new = format!("inside {round}").into_bytes();
                    match located.replace(&permit(&file), &Sha256::of(&content), &new) {
                        Ok(()) => {
                            content = new;
                            writes += 1;
                        }
                        Err(error) => assert_ne!(error.reason(), Reason::Stale, "{error}"),
                    }
                    let fresh = format!("new-{round}");
                    if let Ok(Resolved::Inside(located)) =
                        workspace.resolve(&format!("dir/{fresh}"), Access::Write)
                    {
                        let _ = located.write_new(&permit(&dir.join(&fresh)), b"new");
                    }
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
        assert_eq!(fs::read(root.join("other/file")).unwrap(), b"outside", "{lookup:?}");
        assert_eq!(names(&root.join("other")), ["file"], "{lookup:?}");
        assert!(reads > 0 && writes > 0 && refused > 0, "{lookup:?}: {reads} {writes} {refused}");
        let real =
            [root.join("ws/dir"), root.join("ws/away")].into_iter().find(|path| !path.is_symlink()).unwrap();
        let leftovers = names(&real).into_iter().filter(|name| is_leftover(name.as_ref()));
        assert_eq!(leftovers.count(), 0);
    }
}

#[test]
fn leftovers_of_a_crash_are_told_by_their_name() {
    for (name, expected) in [
        (".alisio-0123456789abcdef0123456789abcdef.tmp", true),
        (".alisio-0123456789abcdef0123456789abcde.tmp", false),
        (".alisio-0123456789abcdef0123456789abcdeg.tmp", false),
        ("alisio-0123456789abcdef0123456789abcdef.tmp", false),
        (".alisio", false),
    ] {
        assert_eq!(is_leftover(name.as_ref()), expected, "{name}");
    }
}

#[test]
fn a_broad_workspace_is_told() {
    for (root, home, expected) in [
        ("/", None, true),
        ("/", Some("/home/a"), true),
        ("/home", Some("/home/a"), true),
        ("/home/a", Some("/home/a"), true),
        ("/home/a/project", Some("/home/a"), false),
        ("/home/ab", Some("/home/a"), false),
        ("/srv", None, false),
        // A home of `/`, as containers have it, says nothing about the rest.
        ("/srv", Some("/"), false),
    ] {
        assert_eq!(is_broad(Path::new(root), home.map(Path::new)), expected, "{root} {home:?}");
    }
}

#[test]
fn a_guarded_directory_is_read_but_never_written() {
    let (_folder, root) = folder();
    fs::create_dir(root.join("ws/state")).unwrap();
    fs::write(root.join("ws/state/trust.json"), "{}").unwrap();
    symlink(root.join("ws/state"), root.join("link")).unwrap();
    let missing = root.join("declared/not/yet");
    let workspace = workspace(&root, Lookup::Kernel).guarding(&root.join("link")).guarding(&missing);
    // Roots that are added later change nothing, also inside.
    let workspace = workspace.with_root(&root.join("ws/state")).unwrap();
    let declared = |name: &str| root.join("declared").join(name).display().to_string();
    for (path, expected) in [
        ("state/trust.json".to_owned(), Some(Reason::ReadOnly)),
        ("state/new/file".to_owned(), Some(Reason::ReadOnly)),
        ("state".to_owned(), Some(Reason::ReadOnly)),
        ("sub/../state/x".to_owned(), Some(Reason::ReadOnly)),
        (root.join("link/x").display().to_string(), Some(Reason::ReadOnly)),
        (declared("not/yet/config.json"), Some(Reason::ReadOnly)),
        ("state2/x".to_owned(), None),
        (declared("not/y"), None),
    ] {
        let reason = workspace.resolve(&path, Access::Write).err().map(|error| error.reason());
        assert_eq!(reason, expected, "{path}");
    }
    assert_eq!(inside(&workspace, "state/trust.json").read(100).unwrap(), b"{}");
}

#[cfg(target_os = "linux")]
#[test]
fn what_processes_hold_is_no_file() {
    for lookup in LOOKUPS {
        let own = PathBuf::from(format!("/proc/{}", std::process::id()));
        let workspace = Workspace::open_with(&own, lookup).unwrap();
        let located = inside(&workspace, "environ");
        assert_eq!(located.open_file().unwrap_err().reason(), Reason::Special);
        assert!(located.open_below(&own.join("environ")).is_none());
    }
    // An ordinary file without content is one.
    let (_folder, root) = folder();
    fs::write(root.join("ws/empty"), "").unwrap();
    assert_eq!(inside(&workspace(&root, Lookup::Kernel), "empty").open_file().unwrap().size(), 0);
}
