package graph

// init takes out of the schema what the library puts into every one and this server does not serve: a client that read of @defer
// would wait for parts that never come.
func init() { delete(parsedSchema.Directives, "defer") }
