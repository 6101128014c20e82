-- Nodes fetch the certificates of their bundle again when this has grown.
ALTER TABLE projects ADD COLUMN certificate_renewals BIGINT NOT NULL DEFAULT 0;
