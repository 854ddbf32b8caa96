-- +goose Up
-- modify enum type "run_event_kind"
ALTER TYPE "run_event_kind" ADD VALUE 'ACTED';
