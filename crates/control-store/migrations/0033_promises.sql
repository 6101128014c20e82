-- Warnings of the bundle's check that a policy counts; NULL for bundles of before they were counted.
ALTER TABLE bundles ADD COLUMN warnings BIGINT;
-- Changes of how a user signs in, by which two persons are found to be one. The query repeats the condition.
CREATE INDEX audit_of_sign_in_changes ON audit (at)
  WHERE action IN ('password.reset_link_created', 'totp.reset', 'sso.created', 'sso.changed');
