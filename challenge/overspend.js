#!/usr/bin/env node
// The overspend challenge: by how much can a gateway's spending limit be exceeded, how many answers does it forget to charge,
// and what does a crash cost? Results are lines of JSON; report.js makes tables of them.

import { appendFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { attacks, limit } from './attacks.js'
import { answerIn, hasText } from './client.js'
import { gateways, hasClock } from './gateways/index.js'
import { judge } from './judge.js'
import { dollars, nanos } from './money.js'
import { hasProgram } from './programs.js'
import { startUpstream } from './upstream.js'

const help = `Usage: overspend GATEWAY [options]

Gateways
                        ${wrapped(Object.keys(gateways))}
                        \`any\` is one that you have started; see README.md. The others are started by this program

Options
  --attacks A,B         only these: ${wrapped(Object.keys(attacks))}
  --runs N              how often each is run (1)
  --out FILE            append the results here (results.jsonl); - = standard output only
  --upstream-port N     of the provider (any free port)
  --program PATH        of the gateway, if it is not in PATH under its usual name
  --gateway-version TEXT  for the report, if the gateway does not say it

Options for a gateway of yours
  --base-url URL[,URL]  its address, or those of its replicas
  --keys FILE           keys that may spend $1.00 each, one in each line with its id, if it has one; each run uses one
  --spent COMMAND       prints what the key in $KEY (its id, if it has one) has spent, in dollars
  --header TEXT         how a key is sent ('authorization: Bearer $KEY')
  --model ID            the name of the provider's model m1 (m1)
  --path PATH           of chat completions (/v1/chat/completions)
  --kill COMMAND, --start COMMAND   for crashes
  --settle-ms N         for how long what was spent must not change (5000)
  --idempotency-keys    it promises one generation for each Idempotency-Key
  --name, --setting     for the report

The exit code is 1 if a limit was exceeded, an answer was not charged, or one was charged twice.`

/** @param {string[]} names */
function wrapped(names) {
  const lines = ['']
  for (const name of names) {
    if ((lines.at(-1) ?? '').length + name.length > 70) lines.push('')
    lines[lines.length - 1] += `${name}, `
  }
  return lines.join('\n                        ').replace(/, $/, '')
}

/** Why an attack is not run, by what the gateway lacks. @type {Partial<Record<keyof import('./gateway.js').Gateway, string>>} */
const whyNot = {
  isOneCallPerKey: 'it promises nothing for idempotency keys',
  kill: 'no command kills it',
  terminate: 'no command ends it',
  restart: 'no command starts it again',
  database: 'no database that could be stopped alone',
  cache: 'no cache',
  limit: 'its limit is not changed here',
  price: 'its prices are not changed here',
}

const text = { type: /** @type {const} */ ('string') }
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    help: { type: 'boolean', short: 'h' },
    'idempotency-keys': { type: 'boolean' },
    ...Object.fromEntries(
      [
        'attacks',
        'runs',
        'out',
        'upstream-port',
        'program',
        'base-url',
        'keys',
        'spent',
        'header',
        'model',
        'path',
        'kill',
        'start',
        'settle-ms',
        'name',
        'gateway-version',
        'setting',
      ].map((name) => [name, text]),
    ),
  },
})
/** @type {Record<string, string | undefined>} */
const options = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, String(value)]))

// Programs run in a folder of their own.
if (options.program?.includes('/')) options.program = resolve(options.program)

const [gatewayName] = positionals
if (values.help || gatewayName === undefined) {
  console.log(help)
  process.exit(values.help ? 0 : 2)
}
process.exitCode = (await runAll(gatewayName)) ? 0 : 1
process.exit()

/** @param {string} name @returns {Promise<boolean>} whether every promise was kept */
async function runAll(name) {
  const chosen = options.attacks?.split(',') ?? Object.keys(attacks)
  const unknown = chosen.filter((attack) => !(attack in attacks))
  if (unknown.length > 0 || !(name in gateways)) {
    console.error(`Unknown: ${[...unknown, ...(name in gateways ? [] : [name])].join(', ')}. See --help.`)
    return false
  }
  const upstream = await startUpstream(Number(options['upstream-port'] ?? 0))
  let isClean = true
  // Those that need a clock of their own need a gateway of their own.
  for (const clock of new Set(chosen.map((attack) => attacks[attack]?.clock))) {
    const ofClock = chosen.filter((attack) => attacks[attack]?.clock === clock)
    isClean = (await runOn(name, { upstream, clock, names: ofClock })) && isClean
  }
  upstream.stop()
  return isClean
}

/**
 * @param {string} name
 * @param {{ upstream: import('./upstream.js').Upstream, clock: string | undefined, names: string[] }} terms
 */
async function runOn(name, { upstream, clock, names }) {
  if (clock !== undefined && (!hasClock(name) || !hasProgram('faketime'))) {
    for (const attack of names)
      skip(name, attack, hasClock(name) ? 'faketime is not installed' : 'its clock cannot be set')
    return true
  }
  const start = gateways[name]
  if (!start) throw new Error(`no gateway ${name}`)
  const runs = Number(options.runs ?? 1)
  let isClean = true
  for (let run = 1; run <= runs; run++) {
    // A clock runs on: each run of such an attack starts the gateway again.
    if (run > 1 && clock === undefined) break
    const folder = mkdtempSync(join(tmpdir(), 'overspend-'))
    const startOptions = { upstream: upstream.url, folder, options, clock }
    const gateway = await start(startOptions)
    try {
      for (let again = 1; again <= (clock === undefined ? runs : 1); again++) {
        for (const attack of names) isClean = (await tryAttack(attack, { gateway, upstream })) && isClean
      }
    } finally {
      await gateway.stop()
      rmSync(folder, { recursive: true, force: true })
    }
  }
  return isClean
}

/**
 * A gateway that does not recover, or does not say what was spent, is a result too.
 *
 * @param {string} name
 * @param {{ gateway: import('./gateway.js').Gateway, upstream: import('./upstream.js').Upstream }} parts
 */
async function tryAttack(name, parts) {
  try {
    return await runAttack(name, parts)
  } catch (error) {
    record({ gateway: parts.gateway.name, attack: name, failed: String(error) })
    return false
  }
}

/**
 * @param {string} name
 * @param {{ gateway: import('./gateway.js').Gateway, upstream: import('./upstream.js').Upstream }} parts
 */
async function runAttack(name, { gateway, upstream }) {
  const attack = attacks[name]
  if (!attack) throw new Error(`no attack ${name}`)
  const missing = attack.needs?.filter((need) => gateway[need] === undefined) ?? []
  if (missing.length > 0) {
    skip(gateway.name, name, missing.flatMap((need) => whyNot[need] ?? []).join(', '))
    return true
  }
  upstream.behave(attack.behavior ?? {})
  upstream.reset()
  const key = await gateway.createKey(limit, attack.window)
  const spent = async () => await settledSpend(gateway, key)
  const started = performance.now()
  const outcomes = await attack.run({ gateway, upstream, key, spent })
  await upstream.idle()
  const allowed = nanos(attack.mayCharge ?? limit)
  const delivered = outcomes.flatMap((outcome) => answerIn(outcome) ?? [])
  const amounts = {
    served: upstream.served().amount,
    delivered: upstream.costOf(delivered),
    spent: await spent(),
    allowed,
  }
  const verdict = judge({ ...amounts, hasText: outcomes.some(hasText), charges: attack.charges })
  record({
    gateway: gateway.name,
    version: options['gateway-version'] ?? gateway.version,
    setting: gateway.setting,
    attack: name,
    ...inDollars({ ...amounts, ...verdict }),
    calls: outcomes.length,
    answers: delivered.length,
    statuses: tally(outcomes),
    seconds: Math.round((performance.now() - started) / 1000),
    date: new Date().toISOString().slice(0, 10),
  })
  return verdict.over === 0n && verdict.uncharged === 0n && verdict.twice === 0n
}

/** @param {import('./gateway.js').Gateway} gateway @param {import('./gateway.js').Key} key */
async function settledSpend(gateway, key) {
  let last = await gateway.spent(key)
  for (let since = Date.now(), tries = 0; Date.now() - since < gateway.settleMs && tries < 600; tries++) {
    await sleep(250)
    const now = await gateway.spent(key)
    if (now !== last) since = Date.now()
    last = now
  }
  return last
}

/** @param {import('./client.js').Outcome[]} outcomes */
function tally(outcomes) {
  /** @type {Record<string, number>} */
  const counts = {}
  for (const { status, isComplete, hasLeft } of outcomes) {
    const name = hasLeft ? 'left' : status === 200 && !isComplete ? 'cut' : status === 0 ? 'none' : String(status)
    counts[name] = (counts[name] ?? 0) + 1
  }
  return counts
}

/** @param {Record<string, bigint>} amounts */
function inDollars(amounts) {
  return Object.fromEntries(Object.entries(amounts).map(([name, amount]) => [name, dollars(amount)]))
}

/** @param {object} row */
function record(row) {
  const line = JSON.stringify(row)
  console.log(line)
  if (options.out !== '-') appendFileSync(options.out ?? 'results.jsonl', `${line}\n`)
}

/** @param {string} gateway @param {string} attack @param {string} reason */
function skip(gateway, attack, reason) {
  record({ gateway, attack, skipped: reason })
}
