import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createThrowAwayFolder, createEngine as openEngine } from '../../test/parts/engines.ts'
import { ratesAt } from '../catalog/price.ts'
import { type Config, loadConfig } from '../config/config.ts'
import type { ConfigListener } from '../config/source.ts'
import { dialects } from '../dialects/registry.ts'
import { systemClock } from '../kernel/clock.ts'
import { formatPrice, type Pico } from '../kernel/money.ts'
import { createSandboxTransport } from '../providers/sandbox/transport.ts'
import { createHealth } from '../routing/health.ts'
import type { Database } from '../store/database.ts'
import { createLog } from '../telemetry/log.ts'
import { createLiveCatalog } from './live-catalog.ts'

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
    builtInModels: [],
  })
  if ('faults' in loaded) throw new Error('the configuration is wrong')
  return loaded.config
}

/** Over a database that can be made unreachable. */
async function openCatalog(database: Database) {
  const store = { isDown: false, tries: 0 }
  const sql = ((...args: Parameters<Database['sql']>) => {
    store.tries++
    return store.isDown ? Promise.reject(new Error('the database is down')) : database.sql(...args)
  }) as Database['sql']
  let listener: ConfigListener = () => undefined
  const source = {
    current: configWith('1.00'),
    onChange(added: ConfigListener) {
      listener = added
      return () => {}
    },
  }
  let written = ''
  const write = (lines: string) => {
    written += lines
  }
  const log = createLog({ format: 'json', clock: systemClock, write })
  const catalog = await createLiveCatalog({
    source,
    sandboxTransport: createSandboxTransport({ clock: systemClock }),
    dialects,
    health: createHealth({ clock: systemClock, random: () => 0, onNotice: () => {} }),
    database: { ...database, sql },
    clock: systemClock,
    log,
    retryMs: 5,
  })
  return {
    catalog,
    store,
    logged() {
      log.flush()
      const lines = written.trimEnd().split('\n')
      return lines.map((line) => (JSON.parse(line) as { level: string }).level)
    },
    change(price: string) {
      source.current = configWith(price)
      return listener(source.current)
    },
    price() {
      const found = catalog.current.findPrice('acme/one')?.price
      return found && formatPrice(ratesAt(found, 0).input as Pico)
    },
  }
}

test('applies a configuration change made while the database is down once it is back, and reports it active only then', async () => {
  await using place = await openEngine('sqlite').openStore()
  const { catalog, store, logged, change, price } = await openCatalog(place.database)
  store.isDown = true
  const active = change('2.00')
  const { tries } = store
  while (store.tries < tries + 3) await Bun.sleep(1)
  expect([price(), await Promise.race([active, 'not yet'])]).toEqual(['1.00', 'not yet'])
  store.isDown = false
  expect([await active, price()]).toEqual([true, '2.00'])
  // Once for the failure, once for the recovery.
  expect(logged()).toEqual(['error', 'info'])
  catalog.close()
})

test('retries a failed reload, and a later change includes it', async () => {
  await using place = await openEngine('sqlite').openStore()
  const { catalog, store, change, price } = await openCatalog(place.database)
  store.isDown = true
  const first = change('2.00')
  expect(await catalog.reload()).toBe(false)
  const second = change('3.00')
  store.isDown = false
  expect([await first, await second, price()]).toEqual([true, true, '3.00'])
  store.isDown = true
  expect(await catalog.reload()).toBe(false)
  catalog.close()
  const { tries } = store
  await Bun.sleep(30)
  expect(store.tries).toBe(tries)
})
