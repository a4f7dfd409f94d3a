// The recipes of the Python clients, through each of their surfaces onto all dialects.

import { test } from 'bun:test'
import { describeClients } from './describe-client.ts'
import { pythonClients } from './python.ts'

const all = await pythonClients()
describeClients(all.flatMap(({ client, missing }) => (missing === undefined ? client : [])))
for (const { client, missing } of all) {
  if (missing !== undefined) test.skip(`${client.name} ${client.version}: ${missing}`, () => {})
}
