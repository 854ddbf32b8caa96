-- What the schema has beyond ent/schema, executed after ent's tables are made (package schemadiff). A change here needs a
-- migration as one of ent/schema does: make migration NAME=…

-- A run's event is found by its run and number alone, and a run's texts by their run: an index of their ids would be written
-- in each cycle and read by nobody.
ALTER TABLE run_events DROP CONSTRAINT run_events_pkey;
DROP INDEX runevent_run_id_seq;
ALTER TABLE run_events ADD PRIMARY KEY (run_id, seq);
ALTER TABLE run_contents DROP CONSTRAINT run_contents_pkey;
ALTER TABLE run_contents DROP CONSTRAINT IF EXISTS run_contents_run_id_key;
DROP INDEX IF EXISTS run_contents_run_id_key;
ALTER TABLE run_contents ADD PRIMARY KEY (run_id);
