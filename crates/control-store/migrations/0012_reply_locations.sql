-- The `Location` of an answer that is kept for `Idempotency-Key`.
ALTER TABLE replies ADD COLUMN location TEXT;
