-- Identities that users have unlinked, by which an approval finds who could sign in by them. The query repeats the
-- condition.
CREATE INDEX audit_of_unlinked_identities ON audit (subject_id, at) WHERE action = 'identity.unlinked';
