package graph

// gqlgen runs in the root, where gqlgen.yml lies; the generator of ent runs before it and writes schema/ent.graphql.
//
//go:generate sh -c "cd .. && go tool gqlgen"
