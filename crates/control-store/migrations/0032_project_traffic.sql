-- Requests of the nodes of a project by steps of time, for the page and the interface that show them. One row has all
-- nodes, so that a step costs one write for a whole fleet.
CREATE TABLE project_traffic (
  project_id TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  -- Length of the step, and its begin in milliseconds since 1970.
  step_secs BIGINT NOT NULL,
  at BIGINT NOT NULL,
  -- Bytes of the two columns behind it.
  bytes BIGINT NOT NULL,
  -- Requests, 5xx and the buckets of latency by route: at most 50 routes, and the rest together.
  routes TEXT NOT NULL,
  -- The same by node.
  nodes TEXT NOT NULL,
  PRIMARY KEY (project_id, step_secs, at)
);

CREATE INDEX project_traffic_at ON project_traffic (step_secs, at);
