//! Is the place fit for the state? Folder, rights, file system. Decided before SQLite touches anything, because its
//! own answer to a network file system is silence and later damage.

use std::fs::{self, DirBuilder, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use crate::StoreError;

/// Creates a folder (and those above it) that only its owner can look into. One that is there stays as it is.
pub(crate) fn private_folder(path: &Path) -> Result<(), StoreError> {
    if path.is_dir() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|error| StoreError::file(path, error))
}

/// Makes sure that the database file exists and is its owner's alone; says whether it is new (empty).
pub(crate) fn private_file(path: &Path) -> Result<bool, StoreError> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::IsADirectory => {
                StoreError::NotADatabase { path: path.to_owned(), reason: "it is a folder" }
            }
            _ => StoreError::file(path, error),
        })?;
    let metadata = file.metadata().map_err(|error| StoreError::file(path, error))?;
    if !metadata.is_file() {
        return Err(StoreError::NotADatabase { path: path.to_owned(), reason: "it is not a regular file" });
    }
    if metadata.permissions().mode() & 0o077 != 0 {
        // A file of another owner stays as it is: it may be shared on purpose.
        let _ = file.set_permissions(fs::Permissions::from_mode(0o600));
    }
    Ok(metadata.len() == 0)
}

/// Names the file that lies at `path`: its device and number.
pub(crate) fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Refuses network file systems.
#[cfg(target_os = "linux")]
pub(crate) fn check_local(folder: &Path) -> Result<(), StoreError> {
    let statfs = rustix::fs::statfs(folder).map_err(|error| StoreError::file(folder, error.into()))?;
    // The field is signed on some architectures; the magic numbers are 32 bits wide.
    let magic = statfs.f_type as u32;
    let kind = match magic {
        FUSE => fuse_kind(folder),
        _ => network_name(magic).map(str::to_owned),
    };
    match kind {
        Some(kind) => Err(StoreError::Network { path: folder.to_owned(), kind }),
        None => Ok(()),
    }
}

/// Elsewhere nothing is known about file systems.
#[cfg(not(target_os = "linux"))]
pub(crate) fn check_local(_folder: &Path) -> Result<(), StoreError> {
    Ok(())
}

#[cfg(target_os = "linux")]
const FUSE: u32 = 0x6573_5546;

/// Names a network file system by the number that `statfs(2)` gives.
#[cfg(target_os = "linux")]
fn network_name(magic: u32) -> Option<&'static str> {
    Some(match magic {
        0x6969 => "NFS",
        0xff53_4d42 => "CIFS",
        0xfe53_4d42 => "SMB2",
        0x517b => "SMB",
        0x0102_1997 => "9p",
        0x5346_414f | 0x6b41_4653 => "AFS",
        0x00c3_6400 => "Ceph",
        0x0bd0_0bd0 => "Lustre",
        0x4750_4653 => "GPFS",
        0x7375_7245 => "Coda",
        0x564c => "NCP",
        0x1985_0919 | 0x2003_0528 => "OrangeFS",
        _ => return None,
    })
}

/// Says which FUSE file system holds `folder`, if it is one that goes over the network. Local ones (encrypted folders,
/// `fuseblk` disks, overlays) are fine.
#[cfg(target_os = "linux")]
fn fuse_kind(folder: &Path) -> Option<String> {
    let folder = fs::canonicalize(folder).ok()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    fuse_kind_in(&mounts, &folder)
}

#[cfg(target_os = "linux")]
fn fuse_kind_in(mounts: &str, folder: &Path) -> Option<String> {
    const REMOTE: [&str; 14] = [
        "sshfs",
        "rclone",
        "s3fs",
        "s3ql",
        "goofys",
        "gcsfuse",
        "blobfuse",
        "blobfuse2",
        "glusterfs",
        "davfs",
        "curlftpfs",
        "ceph",
        "juicefs",
        "mount-s3",
    ];
    let mut best: Option<(usize, &str)> = None;
    for line in mounts.lines() {
        let mut fields = line.split(' ');
        let Some(point) = fields.nth(4) else { continue };
        let Some(kind) = fields.skip_while(|field| *field != "-").nth(1) else { continue };
        let point = point.replace("\\040", " ");
        // A later line covers an earlier one at the same point.
        if folder.starts_with(&point) && best.is_none_or(|(length, _)| point.len() >= length) {
            best = Some((point.len(), kind));
        }
    }
    let (_, kind) = best?;
    let name = kind.strip_prefix("fuse.")?;
    REMOTE.contains(&name).then(|| kind.to_owned())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_known_by_number_and_fuse_by_name() {
        let cases = [
            (0x6969, Some("NFS")),
            (0xfe53_4d42, Some("SMB2")),
            (0xff53_4d42, Some("CIFS")),
            (0x0102_1997, Some("9p")),
            (0xef53, None),
            (0x9123_683e, None),
            (0x0102_1994, None),
            (0x794c_7630, None),
        ];
        for (magic, name) in cases {
            assert_eq!(network_name(magic), name, "{magic:x}");
        }
        let mounts = "\
22 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /home/a/far rw - fuse.sshfs host:/ rw
31 22 0:41 / /home/a/vault rw - fuse.gocryptfs /x rw
32 22 0:42 / /mnt/two\\040words rw,x shared:3 master:1 - fuse.rclone r: rw
33 30 0:43 / /home/a/far/near rw - fuseblk /dev/sdb1 rw";
        let cases = [
            ("/home/a/far/x", Some("fuse.sshfs")),
            ("/home/a/far/near/x", None),
            ("/home/a/vault", None),
            ("/mnt/two words/x", Some("fuse.rclone")),
            ("/home/a/farther", None),
        ];
        for (folder, kind) in cases {
            assert_eq!(fuse_kind_in(mounts, Path::new(folder)).as_deref(), kind, "{folder}");
        }
    }
}
