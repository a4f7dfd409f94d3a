// Google's clients show what is wrong and what to do, in a program that does not catch their exceptions. The recipes show
// the exceptions that are caught.

import { afterAll, describe, expect, test } from 'bun:test'
import { createWallets } from '../money/wallets.ts'
import { startGateway } from '../parts/gateway.ts'
import { googleClients } from './clients.ts'
import { pythonClients } from './python.ts'
import { runRecipe } from './run-recipe.ts'

const gateway = await startGateway()
afterAll(() => gateway.stop())
const { key: emptyKey } = await createWallets(gateway).open()
const clients = [...(await googleClients()), ...(await pythonClients())]
const google = clients.filter(({ client }) => client.surfaces.includes('gemini'))

describe.each(google.map((each) => [`${each.client.name} ${each.client.version}`, each] as const))(
  '%s',
  (_, { client, missing }) => {
    test.skipIf(missing !== undefined).each([
      ['a wrong key', 'sk-tg-wrong', 401, 'UNAUTHENTICATED', 'UNAUTHORIZED', 'key'],
      ['an empty wallet', emptyKey, 402, 'FAILED_PRECONDITION', 'INSUFFICIENT_BALANCE', 'Top up'],
    ])('%s', async (_what, key, code, status, reason, says) => {
      const [printed] = await runRecipe(client, [{ name: 'sandbox', url: gateway.url, key, calls: [] }])
      const output = printed?.output ?? ''
      for (const text of [client.exceptions.key, String(code), status, reason, says]) expect(output).toContain(text)
    })
  },
)
