PRAGMA foreign_keys = OFF;
BEGIN TRANSACTION;
CREATE TABLE blob_uses (
    session INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    hash TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    PRIMARY KEY (session, hash)
) STRICT, WITHOUT ROWID;
CREATE TABLE calls (
    key INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    run TEXT NOT NULL,
    call TEXT NOT NULL,
    tool TEXT NOT NULL,
    effect TEXT NOT NULL,
    arguments TEXT NOT NULL,
    arguments_refs TEXT,
    digest TEXT NOT NULL,
    started_at TEXT NOT NULL,
    ended_at TEXT,
    in_message INTEGER NOT NULL DEFAULT 0,
    result TEXT,
    result_refs TEXT
) STRICT;
CREATE TABLE events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    run TEXT NOT NULL,
    run_seq INTEGER NOT NULL,
    version INTEGER NOT NULL,
    type TEXT NOT NULL,
    data TEXT NOT NULL,
    refs TEXT,
    timestamp TEXT NOT NULL,
    correlation_id TEXT
) STRICT;
INSERT INTO "events" VALUES(1,2,'r',1,1,'run_started','{"model":"small"}',NULL,'2026-01-02T03:00:01.000Z',NULL);
INSERT INTO "events" VALUES(2,2,'r',2,1,'run_started','{"model":"small"}',NULL,'2026-01-02T03:00:02.000Z',NULL);
CREATE TABLE ledger (
    seq INTEGER PRIMARY KEY,
    hash TEXT NOT NULL,
    entry TEXT NOT NULL
) STRICT;
INSERT INTO "ledger" VALUES(1,'fcd8b7c5f63eac69ecb713eb1de8a7482080c7fff48ed717b848d04594d7503e','{"at":"2026-01-02T03:00:01.000Z","call":"c","digest":"2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881","effect":"write","kind":"verdict","paths":["a",".","/elsewhere/b"],"reason":"--allow-write was given","run":"r","session":"own-20454","source":"flag","tool":"write_file","verdict":"allow"}');
INSERT INTO "ledger" VALUES(2,'ab973c2a838653aed46d407bc1b744826c8f3558d30b42dfb188e74aef184236','{"at":"2026-01-02T03:00:01.000Z","call":"c","digest":"2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881","effect":"write","kind":"verdict","paths":["a",".","/elsewhere/b"],"reason":"--allow-write was given","run":"r","session":"own-20454","source":"flag","tool":"write_file","verdict":"allow"}');
INSERT INTO "ledger" VALUES(3,'2121f870d76ba0a72f0e96617eadc8b7e9140e2413fba516e73d3d20223e7cf2','{"at":"2026-01-02T03:00:01.000Z","call":"c","digest":"2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881","effect":"write","kind":"verdict","paths":["a",".","/elsewhere/b"],"reason":"--allow-write was given","run":"r","session":"own-20454","source":"flag","tool":"write_file","verdict":"allow"}');
CREATE TABLE messages (
    key INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    run TEXT NOT NULL,
    role TEXT NOT NULL,
    call TEXT,
    call_key INTEGER,
    body TEXT,
    refs TEXT
) STRICT;
INSERT INTO "messages" VALUES(1,2,'r','user',NULL,NULL,'{"role":"user","text":"do it"}',NULL);
CREATE TABLE runs (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    session INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    request_id TEXT,
    model TEXT NOT NULL,
    status TEXT NOT NULL,
    error TEXT,
    input_tokens INTEGER,
    output_tokens INTEGER,
    cached_tokens INTEGER,
    started_at TEXT NOT NULL,
    ended_at TEXT
) STRICT;
INSERT INTO "runs" VALUES(1,'r',2,NULL,'small','interrupted',NULL,NULL,NULL,NULL,'2026-01-02T03:00:01.000Z',NULL);
CREATE TABLE sessions (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    workspace ANY NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    agent TEXT,
    title TEXT,
    status TEXT,
    told_to INTEGER NOT NULL DEFAULT 0,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
) STRICT;
INSERT INTO "sessions" VALUES(1,'own-20454','/w','openai-compatible:chat:http://127.0.0.1','small',NULL,NULL,NULL,0,'2026-01-02T03:00:01.000Z','2026-01-02T03:00:01.000Z');
INSERT INTO "sessions" VALUES(2,'s','/w','openai-compatible:chat:http://127.0.0.1','small',NULL,'do it','interrupted',0,'2026-01-02T03:00:01.000Z','2026-01-02T03:00:01.000Z');
CREATE INDEX sessions_by_time ON sessions (updated_at, key);
CREATE INDEX sessions_by_workspace ON sessions (workspace, updated_at, key);
CREATE INDEX runs_by_session ON runs (session);
CREATE UNIQUE INDEX runs_by_request ON runs (session, request_id) WHERE request_id IS NOT NULL;
CREATE INDEX calls_by_session ON calls (session, call);
CREATE INDEX messages_by_session ON messages (session);
CREATE INDEX events_by_session ON events (session);
CREATE INDEX blob_uses_by_hash ON blob_uses (hash);
CREATE TRIGGER ledger_no_update BEFORE UPDATE ON ledger BEGIN
    SELECT RAISE(ABORT, 'the ledger only grows');
END;
CREATE TRIGGER ledger_no_delete BEFORE DELETE ON ledger BEGIN
    SELECT RAISE(ABORT, 'the ledger only grows');
END;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('sessions',2);
INSERT INTO "sqlite_sequence" VALUES('events',2224);
COMMIT;
PRAGMA application_id = 1097623923;
PRAGMA user_version = 1;
