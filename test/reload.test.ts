// Changes of the configuration file that are reported as active are active.

import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { ask } from './parts/ask.ts'
import { startGateway } from './parts/gateway.ts'
import { bothSurfaces } from './parts/surfaces.ts'

test('a larger body is taken as soon as the change is reported', async () => {
  const gateway = await startGateway({ config: 'server: { body_bytes_max: 2048 }\n' })
  const statuses = () =>
    Promise.all(
      bothSurfaces.map(async (surface) => {
        const messages = [{ role: 'user', content: 'x'.repeat(5000) }]
        const response = await ask(gateway, surface, { model: 'sandbox/echo', max_tokens: 10, messages })
        await response.text()
        return response.status
      }),
    )
  try {
    expect(await statuses()).toEqual([413, 413])
    writeFileSync(gateway.configPath, 'server: { body_bytes_max: 1048576 }\n')
    while (!gateway.logged().some(({ message }) => message === 'applied')) await Bun.sleep(5)
    expect(await statuses()).toEqual([200, 200])
  } finally {
    await gateway.stop()
  }
})

test('limits of the file hold for keys in use as soon as the change is reported', async () => {
  const gateway = await startGateway({ config: 'limits: { requests_per_minute: 1000 }\n' })
  const list = async () => {
    const headers = { authorization: `Bearer ${gateway.key}` }
    const response = await fetch(`${gateway.url}/v1/models`, { headers })
    await response.text()
    return response.status
  }
  try {
    expect(await list()).toBe(200)
    writeFileSync(gateway.configPath, 'limits: { requests_per_minute: 1 }\n')
    while (!gateway.logged().some(({ message }) => message === 'applied')) await Bun.sleep(5)
    await list()
    expect(await list()).toBe(429)
  } finally {
    await gateway.stop()
  }
})

test('a stopping gateway accepts requests for as long as the file says at that moment', async () => {
  // The environment would win over the file; an empty variable counts as not set.
  const env = { TOLLGATE_DRAIN_DELAY_SECONDS: '' }
  const gateway = await startGateway({ env, config: 'server: { drain_delay_seconds: 60 }\n' })
  writeFileSync(gateway.configPath, 'server: { drain_delay_seconds: 0 }\n')
  while (!gateway.logged().some(({ message }) => message === 'applied')) await Bun.sleep(5)
  await gateway.stop()
})
