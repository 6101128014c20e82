-- Where the change of an answer that is kept for `Idempotency-Key` belongs: its repetition needs the right there. No
-- foreign keys: the answer to a deletion outlives its project. Answers of earlier releases have none.
ALTER TABLE replies ADD COLUMN org_id TEXT;
ALTER TABLE replies ADD COLUMN project_id TEXT;
