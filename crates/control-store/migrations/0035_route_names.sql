-- Routes that the gate counts as one, as JSON: the bundle answers the same requests by other names.
ALTER TABLE rollouts ADD COLUMN route_names TEXT;
