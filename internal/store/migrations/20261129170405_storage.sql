-- +goose Up
-- The lanes and leases are rewritten at every claim, finish and heartbeat: room on the page keeps those updates heap-only.
ALTER TABLE agent_lanes SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE workspace_lanes SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE attempt_leases SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);
-- A queue that drains leaves dead index entries at its head; vacuum early keeps the claim's first probe short.
ALTER TABLE runs SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05);
ALTER TABLE wakeup_requests SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05);

-- +goose Down
ALTER TABLE agent_lanes RESET (fillfactor, autovacuum_vacuum_scale_factor);
ALTER TABLE workspace_lanes RESET (fillfactor, autovacuum_vacuum_scale_factor);
ALTER TABLE attempt_leases RESET (fillfactor, autovacuum_vacuum_scale_factor);
ALTER TABLE runs RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_insert_scale_factor);
ALTER TABLE wakeup_requests RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_insert_scale_factor);
