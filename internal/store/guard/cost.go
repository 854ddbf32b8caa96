package guard

// Sums of costs are added up from whole days and hours that are counted, and from the entries that are not. Both are read by
// one statement, so that they are of one snapshot, and the sum is the one that every entry would give (decision 29).

// CostSpans names the parts of the time from $2 on and before $3: counted hours from lo on and before hi, of which those from
// day_lo on and before day_hi are whole days. lo and hi are in the infinite future when no hour of it is counted.
const CostSpans = `
spans AS (
  SELECT lo, hi,
    least(date_trunc('day', lo + interval '1 day' - interval '1 microsecond', 'UTC'), hi) AS day_lo,
    greatest(date_trunc('day', hi, 'UTC'),
      least(date_trunc('day', lo + interval '1 day' - interval '1 microsecond', 'UTC'), hi)) AS day_hi
  FROM (
    SELECT coalesce(max(lo), 'infinity') AS lo, coalesce(max(hi), 'infinity') AS hi
    FROM (
      SELECT date_trunc('hour', $2::timestamptz + interval '1 hour' - interval '1 microsecond', 'UTC') AS lo,
        least(until, date_trunc('hour', $3::timestamptz, 'UTC')) AS hi
      FROM cost_tally_mark) m
    WHERE lo < hi) counted)`

// CountedCosts are the sums of the whole days and hours in CostSpans of workspace $1, of a kind ("" for a parameter).
func CountedCosts(columns, condition string) string {
	part := func(day, from, until string) string {
		return `
  SELECT ` + columns + `
  FROM cost_tallies t
  WHERE t.workspace_id = $1 AND ` + condition + ` AND ` + day + ` AND t.begins >= (SELECT ` + from + ` FROM spans) AND t.begins < (SELECT ` + until + ` FROM spans)`
	}
	return part(`t.day`, `day_lo`, `day_hi`) + `
  UNION ALL` + part(`NOT t.day`, `lo`, `day_lo`) + `
  UNION ALL` + part(`NOT t.day`, `day_hi`, `hi`)
}

// UncountedCosts are the entries of the time that no hour of CostSpans counts, before the counted ones and after them.
func UncountedCosts(columns, condition string) string {
	part := func(from, until string) string {
		return `
  SELECT ` + columns + `
  FROM cost_entries e
  WHERE ` + condition + ` AND e.created_at >= ` + from + ` AND e.created_at < ` + until
	}
	return part(`$2`, `least($3, (SELECT lo FROM spans))`) + `
  UNION ALL` + part(`greatest($2, (SELECT hi FROM spans))`, `$3`)
}

// CostHours adds up the entries of the hours from $1 on and before $2 for each workspace, by agent, project ("" for none) and
// together. A run that had an entry of the same sum before is counted by the last hour in which it had, so that it is counted
// once whatever hours are added up.
const CostHours = `
SELECT workspace_id, kind, subject, false AS day, hour AS begins, since,
  sum(cost_usd) AS cost_usd, sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens,
  count(*) AS runs
FROM (
  SELECT x.*, coalesce((
      SELECT date_trunc('hour', max(o.created_at), 'UTC')
      FROM cost_entries o
      WHERE o.run_id = x.run_id
        AND o.created_at < x.hour
        AND CASE kind WHEN 'AGENT' THEN o.agent_id WHEN 'PROJECT' THEN coalesce(o.project_id, '') ELSE '' END = subject),
    '-infinity') AS since
  FROM (
    SELECT w.id AS workspace_id, k.kind, k.subject, date_trunc('hour', e.created_at, 'UTC') AS hour, e.run_id,
      sum(e.cost_usd) AS cost_usd, sum(e.input_tokens) AS input_tokens, sum(e.output_tokens) AS output_tokens
    FROM workspaces w
    JOIN cost_entries e ON e.workspace_id = w.id AND e.created_at >= $1 AND e.created_at < $2
    CROSS JOIN LATERAL (
      VALUES ('AGENT', e.agent_id), ('PROJECT', coalesce(e.project_id, '')), ('DAY', '')) k (kind, subject)
    GROUP BY 1, 2, 3, 4, 5) x) runs
GROUP BY 1, 2, 3, 5, 6`

// CostDay adds up the hours of the day that begins at $1, when all of them are counted. What a run had in an earlier hour of
// the day is no matter any more, because whoever takes the day takes it whole.
const CostDay = `
SELECT t.workspace_id, t.kind, t.subject, true AS day, $1::timestamptz AS begins, least(t.since, $1) AS since,
  sum(t.cost_usd) AS cost_usd, sum(t.input_tokens) AS input_tokens, sum(t.output_tokens) AS output_tokens,
  sum(t.runs)::bigint AS runs
FROM workspaces w
CROSS JOIN (VALUES ('AGENT'), ('PROJECT'), ('DAY')) k (kind)
JOIN cost_tallies t ON t.workspace_id = w.id AND t.kind = k.kind AND NOT t.day AND t.begins >= $1
  AND t.begins < $1::timestamptz + interval '24 hours'
GROUP BY 1, 2, 3, 6`

// CostTallies are the sums that are stored of the hours that begin from $1 on and before $2, or with day of the days.
func CostTallies(day string) string {
	return `
SELECT t.workspace_id, t.kind, t.subject, t.day, t.begins, t.since, t.cost_usd, t.input_tokens, t.output_tokens, t.runs
FROM workspaces w
CROSS JOIN (VALUES ('AGENT'), ('PROJECT'), ('DAY')) k (kind)
JOIN cost_tallies t ON t.workspace_id = w.id AND t.kind = k.kind AND ` + day + `
  AND t.begins >= $1 AND t.begins < $2`
}
