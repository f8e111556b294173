-- The index that `search` looks words up in. It holds no text: of each row the distinct words, as `domain::words` takes texts apart. A row's number
-- is a place (1 a case's names, 2 a case's texts, 3 an attempt's reasons, 4 its transcript, 5 a log's names) times 2^40, and the number there.
-- ASCII letters and digits and all else beyond ASCII are the words' own characters, so that each is one term whatever its script.
CREATE VIRTUAL TABLE search_m USING fts5(words, content='', contentless_delete=1, detail=none, tokenize='ascii');

-- Logs that are not all in the index yet: after is the last attempt of theirs that is. What is to be done is done before the next search.
CREATE TABLE unsearched_m (log_no INTEGER PRIMARY KEY, after INTEGER NOT NULL);
INSERT INTO unsearched_m (log_no, after) SELECT log_no, 0 FROM logs_m;

-- Cases that are in the index, with a digest of the texts that were, so that what a hundred logs say alike is read once.
CREATE TABLE searched_cases_m (case_no INTEGER PRIMARY KEY, digest INTEGER NOT NULL);
