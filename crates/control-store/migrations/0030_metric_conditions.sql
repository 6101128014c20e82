-- A condition on figures of a Prometheus server, as JSON.
ALTER TABLE rollouts ADD COLUMN metric_condition TEXT;
