// `npm run agents`: every agent that can be installed, set up by `tollgate connect`: it reads a file through the gateway,
// and `--undo` restores its settings. With `--sign-in` it has a person's sign-in instead of a key. Four make eight tool calls on each dialect, over two replicas. With `--failures` the
// provider fails before each answer instead. By hand, because the programs have two gigabytes; the small ones are also in
// `npm test`.

import { hiccups } from '../parts/failing-provider.ts'
import { findPostgresPrograms } from '../parts/postgres.ts'
import { refuseOptions, scriptOptions } from '../parts/script-options.ts'
import { tryAiSdk } from './ai-sdk.ts'
import { tryApproved } from './approved-agents.ts'
import { bends, tryBending } from './bending-limits.ts'
import { tryLogin } from './claude-login.ts'
import { makeEightCalls } from './eight-calls.ts'
import { installationKinds } from './installation.ts'
import { type Failures, fetchAgent, realAgents, type Tried, tryConnect } from './real-agents.ts'
import { trySignedIn } from './signed-in-agents.ts'

const aiSdk = 'ai-sdk'
const ids = realAgents.map(({ id }) => id)
const usage = `Usage: npm run agents [-- --only NAME] [--sign-in | --approved | --login | --bending | --failures N]

Installs coding agents into the temporary folder and runs each through the gateway, against a fake model.
  --only       one of ${ids.join(', ')}; with --failures also ${aiSdk}
  --sign-in    with a person's sign-in: its token expires in mid-session, and at the end it is signed out
  --approved   the same on whole gateways: SQLite and two replicas, a local account and an identity provider
  --login      Claude Code's own /login in tmux, on the same: denied, expired, approved, signed out, and what it shows
  --bending    at a spend limit that names another model, or slows down, in the middle of the task
  --failures   the provider fails this many times in a row before each answer, in each of several ways`

const {
  only,
  failures,
  'sign-in': signIn,
  approved,
  login,
  bending,
} = scriptOptions(usage, {
  only: { type: 'string' },
  'sign-in': { type: 'boolean' },
  approved: { type: 'boolean' },
  login: { type: 'boolean' },
  bending: { type: 'boolean' },
  failures: { type: 'string' },
})
if (failures !== undefined && !/^[1-9]$/.test(failures)) refuseOptions('--failures takes a number from 1 to 9.', usage)
if (only !== undefined && !ids.includes(only) && (only !== aiSdk || failures === undefined))
  refuseOptions(`There is no agent ${only}.`, usage)

const growing = ['claude', 'opencode', 'cline', 'qwen']
const percent = (share: number) => `${(100 * share).toFixed(1)} %`

let failed = 0
function report(name: string, { faults, printed, seconds }: Tried): void {
  console.log(`${faults.length === 0 ? 'ok  ' : 'FAIL'} ${name}: ${seconds.toFixed(1)} s`)
  if (faults.length === 0) return
  failed++
  console.log([...faults, ...printed.split('\n')].map((line) => `     | ${line}`).join('\n'))
}

async function eachFailure(name: string, run: (failures: Failures) => Promise<Tried>): Promise<void> {
  for (const hiccup of Object.keys(hiccups))
    report(`${name}, ${failures} times ${hiccup} before each answer`, await run({ times: Number(failures), hiccup }))
}

const kinds = findPostgresPrograms() === undefined ? installationKinds.slice(0, 2) : installationKinds

for (const agent of realAgents.filter(({ id }) => (login ? id === 'claude' : only === undefined || id === only))) {
  const name = `${agent.id} ${agent.version}`
  const fetched = await fetchAgent(agent)
  if ('reason' in fetched) {
    console.log(`skipped ${name}: ${fetched.reason}`)
    continue
  }
  if (failures !== undefined) {
    await eachFailure(name, (each) => tryConnect(agent, fetched.folder, each))
    continue
  }
  if (approved || login) {
    const tryOn = approved ? tryApproved : tryLogin
    for (const kind of kinds)
      report(`${name}, ${kind.engine}, ${kind.account}`, await tryOn(agent, fetched.folder, kind))
    continue
  }
  if (bending) {
    for (const bend of bends) report(`${name}, ${bend}`, await tryBending(agent, fetched.folder, bend))
    continue
  }
  if (signIn) {
    report(`${name}, signed in`, await trySignedIn(agent, fetched.folder))
    continue
  }
  report(name, await tryConnect(agent, fetched.folder))
  if (!growing.includes(agent.id) || findPostgresPrograms() === undefined) continue
  for (const { dialect, exitCode, turns, routes, direct, throughGateway } of await makeEightCalls(
    agent,
    fetched.folder,
  )) {
    const isGood = exitCode === 0 && turns >= 9 && routes === 1 && throughGateway >= 0.95 * direct
    const rates = `cached ${percent(throughGateway)}, without the gateway ${percent(direct)}`
    console.log(`${isGood ? 'ok  ' : 'FAIL'}   on ${dialect}: ${turns} turns on ${routes} of 2 routes, ${rates}`)
    if (!isGood) failed++
  }
}
if (failures !== undefined && (only === undefined || only === aiSdk)) await eachFailure(aiSdk, tryAiSdk)
process.exit(failed === 0 ? 0 : 1)
