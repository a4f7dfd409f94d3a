// A database whose order of text is a language's, as most servers create it, shows the same as one in order of bytes.

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { startGateway } from '../parts/gateway.ts'
import { findPostgresPrograms, sharedPostgres } from '../parts/postgres.ts'
import { chat } from '../parts/surfaces.ts'

test.skipIf(findPostgresPrograms() === undefined)('lists, sums and exports in the order of en-US', async () => {
  const url = await (await sharedPostgres()).createDatabase('en-US')
  const gateway = await startGateway({ env: { DATABASE_URL: url } })
  const token = readFileSync(join(gateway.dataFolder, 'admin-token'), 'utf8').trim()
  const ask = (path: string) => fetch(gateway.url + path, { headers: { authorization: `Bearer ${token}` } })
  // biome-ignore lint/suspicious/noExplicitAny: tests look into every kind of answer.
  const read = async (path: string): Promise<any> => (await ask(path)).json()
  const generate = async (model: string): Promise<string> => {
    const headers = { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json', ...chat.headers }
    const body = JSON.stringify({ model, max_tokens: 10, messages: [{ role: 'user', content: 'x' }] })
    const response = await fetch(gateway.url + chat.path, { method: 'POST', headers, body })
    await response.text()
    return response.headers.get('x-request-id') ?? ''
  }
  try {
    const made: string[] = []
    for (const model of ['sandbox/echo', 'no/such', 'sandbox/echo', 'sandbox/echo']) made.unshift(await generate(model))
    // Failed requests are written in the background.
    while ((await ask(`/api/requests/${made[2]}`)).status !== 200) await Bun.sleep(20)

    const [workspace] = (await read('/api/workspaces')).data
    const idsOf = async (query: string) =>
      (await read(`/api/requests?${query}`)).data.map(({ id }: { id: string }) => id)
    expect(await idsOf('')).toEqual(made)
    expect(await idsOf(`workspace_id=${workspace.id}`)).toEqual(made)
    expect(await idsOf('outcome=failed')).toEqual([made[2]])
    expect(await idsOf('model=sandbox/echo')).toEqual([made[0], made[1], made[3]])
    const first = await read('/api/requests?limit=2')
    expect(await idsOf(`limit=2&cursor=${first.next_cursor}`)).toEqual(made.slice(2))

    expect((await read('/api/stats')).total).toMatchObject({ requests: 4, errors: 1 })
    expect((await read(`/api/workspaces/${workspace.id}/transfers`)).data).toHaveLength(4)
    const lines = (await (await ask('/api/requests/export')).text()).trim().split('\n')
    expect(lines).toHaveLength(1 + 4)
  } finally {
    await gateway.stop()
  }
})
