// Reads {secret, headers, body} from standard input and verifies the call as a service written with the library does.
import { readFileSync } from "node:fs";
import { Webhook } from "standardwebhooks";

const call = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify(new Webhook(call.secret).verify(call.body, call.headers)));
