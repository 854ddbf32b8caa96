package graph

// init takes out of the schema what the library puts into every schema and this server does not serve. A client that
// found @defer there would wait for parts that never come.
func init() { delete(parsedSchema.Directives, "defer") }
