// A gateway with much in it: started once so that it makes its database, filled while it is stopped, and started again.

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Launched, launch } from './contenders/launch.ts'
import { type Seeds, seed } from './growth-seeds.ts'
import { UPSTREAM_MODEL } from './upstream-replies.ts'

export interface Grown {
  readonly launched: Launched
  readonly keys: readonly string[]
}

/** Five million rows are looked at once on the way up. */
const START_MS_MAX = 120_000

export async function startGrown(
  folder: string,
  upstreamUrl: string,
  has: Seeds & { readonly models: number },
): Promise<Grown> {
  const data = join(folder, 'data')
  mkdirSync(data, { recursive: true, mode: 0o700 })
  writeFileSync(join(folder, 'tollgate.json'), configuration(upstreamUrl, has.models))
  await (await start(folder)).stop()
  const keys = await seed(data, has)
  return { launched: await start(folder), keys }
}

async function start(folder: string): Promise<Launched> {
  const launched = await launch({
    name: 'gateway',
    folder,
    command: [join(import.meta.dir, '..', 'bin', 'tollgate')],
    environment: {
      TOLLGATE_PORT: '0',
      TOLLGATE_DATA: join(folder, 'data'),
      TOLLGATE_CONFIG: join(folder, 'tollgate.json'),
      TOLLGATE_LOG: 'json',
      TOLLGATE_LOCAL_MODELS: 'off',
    },
    startMsMax: START_MS_MAX,
  })
  if ('failed' in launched) throw new Error(launched.failed)
  return launched
}

// The opening credit of $5.00 lasts: a request of 320 tokens costs $0.00000032.
function configuration(upstreamUrl: string, models: number): string {
  const entry = (_: unknown, at: number) => ({
    id: `bench/model-${at}`,
    price: { input: '0.001', output: '0.001' },
    context_tokens: 400_000,
    max_output_tokens: 1_000,
    routes: [{ provider: 'fake-chat', model: UPSTREAM_MODEL }],
  })
  return JSON.stringify({
    providers: [{ id: 'fake-chat', dialect: 'openai-chat', base_url: `${upstreamUrl}/v1`, api_key: 'x' }],
    models: Array.from({ length: models }, entry),
  })
}
