-- Limits of the gate that came later. Rollouts from before get the defaults.
ALTER TABLE rollouts ADD COLUMN gate_mix_permille BIGINT DEFAULT 50;
ALTER TABLE rollouts ADD COLUMN gate_latency_percent BIGINT DEFAULT 20;
