// The recipes of npm's clients, through each of their surfaces onto all dialects.

import { test } from 'bun:test'
import { googleClients, javascriptClients } from './clients.ts'
import { describeClients } from './describe-client.ts'

const google = await googleClients()
const present = google.flatMap(({ client, missing }) => (missing === undefined ? client : []))
describeClients([...javascriptClients(), ...present])
for (const { client, missing } of google) {
  if (missing !== undefined) test.skip(`${client.name} ${client.version}: ${missing}`, () => {})
}
