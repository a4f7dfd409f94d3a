// `npm run agents`: every agent that can be installed, set up by `tollgate connect`: it reads a file through the gateway,
// and `--undo` restores its settings. Four make eight tool calls on each dialect, over two replicas. By hand, because the programs have two gigabytes; the small ones are also in `npm test`.

import { findPostgresPrograms } from '../parts/postgres.ts'
import { refuseOptions, scriptOptions } from '../parts/script-options.ts'
import { makeEightCalls } from './eight-calls.ts'
import { fetchAgent, realAgents, tryConnect } from './real-agents.ts'

const ids = realAgents.map(({ id }) => id)
const usage = `Usage: npm run agents [-- --only NAME]

Installs coding agents into the temporary folder and runs each through the gateway, against a fake model.
  --only   one of ${ids.join(', ')}`

const { only } = scriptOptions(usage, { only: { type: 'string' } })
if (only !== undefined && !ids.includes(only)) refuseOptions(`There is no agent ${only}.`, usage)

const growing = ['claude', 'opencode', 'cline', 'qwen']
const percent = (share: number) => `${(100 * share).toFixed(1)} %`

let failed = 0
for (const agent of realAgents.filter(({ id }) => only === undefined || id === only)) {
  const name = `${agent.id} ${agent.version}`
  const fetched = await fetchAgent(agent)
  if ('reason' in fetched) {
    console.log(`skipped ${name}: ${fetched.reason}`)
    continue
  }
  const { faults, printed, seconds } = await tryConnect(agent, fetched.folder)
  console.log(`${faults.length === 0 ? 'ok  ' : 'FAIL'} ${name}: ${seconds.toFixed(1)} s`)
  if (faults.length > 0) {
    failed++
    console.log([...faults, ...printed.split('\n')].map((line) => `     | ${line}`).join('\n'))
  }
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
process.exit(failed === 0 ? 0 : 1)
