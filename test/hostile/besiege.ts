// Slow clients by hand, `npm run besiege`. Prints what good traffic saw and what memory did, first without the slow ones;
// exit code 1 if good traffic had an error. With --strays: hostile providers instead, and exit code 1 if a tenant got the
// answer of another one.

import { refuseOptions, scriptOptions } from '../parts/script-options.ts'
import { runSlowClients, type SlowResult } from './slow-clients.ts'
import { runStrays, strayKinds } from './strays.ts'

const usage = `npm run besiege -- [options]
  --headers N    clients that never end their headers (2000)
  --bodies N     clients that never end their bodies (2000)
  --readers N    clients that hardly read their answers (500)
  --requests N   good requests beside them (20000)
  --strays N     instead: so many calls to each kind of provider that sends responses which nobody asked for`

const values = scriptOptions(usage, {
  headers: { type: 'string', default: '2000' },
  bodies: { type: 'string', default: '2000' },
  readers: { type: 'string', default: '500' },
  requests: { type: 'string', default: '20000' },
  strays: { type: 'string' },
})
if (values.strays !== undefined) {
  const calls = Number(values.strays)
  if (!Number.isInteger(calls) || calls < 1) refuseOptions('--strays takes a whole number from 1', usage)
  let wrong = 0
  await runStrays(Object.keys(strayKinds), calls, (result) => {
    const { kind, own, otherTenants, otherRequests, refused, repeated, connections, noticed } = result
    wrong += otherTenants
    console.log(
      `${kind.padEnd(42)} ${own} own  ${otherTenants} of another tenant  ${otherRequests} of another request  ${refused} refused  ${repeated} repeated  ${connections} connections  ${noticed} strays noticed`,
    )
  })
  process.exit(wrong === 0 ? 0 : 1)
}
const counts = { headers: Number(values.headers), bodies: Number(values.bodies), readers: Number(values.readers) }
const goodRequests = Number(values.requests)
if (!Object.values(counts).every(Number.isInteger) || !(goodRequests > 0)) {
  refuseOptions('--headers, --bodies, --readers and --requests take whole numbers', usage)
}

function line(name: string, result: SlowResult): string {
  const { errors, retried, p50Ms, p99Ms, mebibytesBefore, mebibytesMost } = result
  const memory = `${mebibytesBefore.toFixed(0)} → ${mebibytesMost.toFixed(0)} MiB`
  return `${name.padEnd(10)} ${errors.length} errors  ${retried} retried  p50 ${p50Ms.toFixed(1)} ms  p99 ${p99Ms.toFixed(1)} ms  ${memory}`
}

const calm = await runSlowClients({ slowHeaders: 0, slowBodies: 0, slowReaders: 0, goodRequests, isAlone: true })
console.log(line('calm', calm))
const besieged = await runSlowClients({
  slowHeaders: counts.headers,
  slowBodies: counts.bodies,
  slowReaders: counts.readers,
  goodRequests,
  isAlone: true,
  onProgress: console.log,
})
console.log(line('besieged', besieged))
console.log(`at the end ${besieged.openHeaders} slow headers and ${besieged.openReaders} slow readers were still there`)
for (const error of besieged.errors.slice(0, 10)) console.log(error)
process.exitCode = besieged.errors.length === 0 ? 0 : 1
