import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createThrowAwayFolder, createEngine as openEngine } from '../../test/parts/engines.ts'
import { showPrice } from '../catalog/price.ts'
import { type Config, loadConfig } from '../config/config.ts'
import type { ConfigListener } from '../config/source.ts'
import { systemClock } from '../kernel/clock.ts'
import { createSandboxTransport } from '../providers/sandbox/transport.ts'
import { createHealth } from '../routing/health/health.ts'
import type { Database } from '../store/database.ts'
import { createLog } from '../telemetry/log.ts'
import { dialects } from './engine.ts'
import { createStock } from './stock.ts'

function configWith(price: string): Config {
  using folder = createThrowAwayFolder()
  const entry = `{ id: acme/one, price: { input: "${price}", output: "1.00" }, routes: [{ provider: sandbox, model: echo }] }`
  writeFileSync(join(folder.path, 'tollgate.yaml'), `models:\n  - ${entry}\n`)
  const loaded = loadConfig({
    env: {},
    cwd: folder.path,
    stdoutIsTerminal: false,
    providerVariables: [],
    builtInProviderIds: ['sandbox'],
  })
  if ('faults' in loaded) throw new Error('the configuration is wrong')
  return loaded.config
}

/** Over a database that can be taken away. */
async function openStock(database: Database) {
  const store = { isAway: false, tries: 0 }
  const sql = ((...args: Parameters<Database['sql']>) => {
    store.tries++
    return store.isAway ? Promise.reject(new Error('the database is away')) : database.sql(...args)
  }) as Database['sql']
  let listener: ConfigListener = () => undefined
  const source = {
    current: configWith('1.00'),
    onChange(heard: ConfigListener) {
      listener = heard
      return () => {}
    },
  }
  const logged: string[] = []
  const log = createLog({ format: 'json', clock: systemClock, write: (line) => void logged.push(line) })
  const stock = await createStock(
    source,
    {
      sandboxTransport: createSandboxTransport({ clock: systemClock }),
      dialects,
      health: createHealth({ clock: systemClock, random: () => 0, onNotice: () => {} }),
      database: { ...database, sql },
      clock: systemClock,
      log,
    },
    { retryMs: 5 },
  )
  return {
    stock,
    store,
    logged() {
      log.flush()
      return logged.map((line) => (JSON.parse(line) as { level: string }).level)
    },
    change(price: string) {
      source.current = configWith(price)
      return listener(source.current)
    },
    price() {
      const found = stock.current.findPrice('acme/one')?.price
      return found && (showPrice(found) as { input: string }).input
    },
  }
}

test('what was changed while the database was away is in force once it is there again, and said to be then', async () => {
  await using place = await openEngine('sqlite').openStore()
  const { stock, store, logged, change, price } = await openStock(place.database)
  store.isAway = true
  const inForce = change('2.00')
  const { tries } = store
  while (store.tries < tries + 3) await Bun.sleep(1)
  expect([price(), await Promise.race([inForce, 'not yet'])]).toEqual(['1.00', 'not yet'])
  store.isAway = false
  expect([await inForce, price()]).toEqual([true, '2.00'])
  // Once that it could not, and once that it could.
  expect(logged()).toEqual(['error', 'info'])
  stock.close()
})

test('a price that could not be taken over is tried for again, and a later change brings it too', async () => {
  await using place = await openEngine('sqlite').openStore()
  const { stock, store, change, price } = await openStock(place.database)
  store.isAway = true
  const first = change('2.00')
  expect(await stock.renew()).toBe(false)
  const second = change('3.00')
  store.isAway = false
  expect([await first, await second, price()]).toEqual([true, true, '3.00'])
  store.isAway = true
  expect(await stock.renew()).toBe(false)
  stock.close()
  const { tries } = store
  await Bun.sleep(30)
  expect(store.tries).toBe(tries)
})
