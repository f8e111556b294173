-- Ends of transcripts: most attempts have few lines, and those of several attempts of one log are compressed together.

-- first_no, last_no: the attempts, of one log, whose last lines stand here. data: these as one zstd frame, each after its number and length
-- (transcript.rs). An attempt that has none has all of its lines in transcripts_m.
CREATE TABLE shared_m (first_no INTEGER PRIMARY KEY, last_no INTEGER NOT NULL, data BLOB NOT NULL);
