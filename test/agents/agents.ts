// `npm run agents`: every agent that can be installed, set up by `tollgate connect`: it reads a file through the gateway,
// and `--undo` restores its settings. By hand, because the programs have two gigabytes; the small ones are also in `npm test`.

import { refuseOptions, scriptOptions } from '../parts/script-options.ts'
import { fetchAgent, realAgents, tryConnect } from './real-agents.ts'

const ids = realAgents.map(({ id }) => id)
const usage = `Usage: npm run agents [-- --only NAME]

Installs coding agents into the temporary folder and runs each through the gateway, against a fake model.
  --only   one of ${ids.join(', ')}`

const { only } = scriptOptions(usage, { only: { type: 'string' } })
if (only !== undefined && !ids.includes(only)) refuseOptions(`There is no agent ${only}.`, usage)

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
  if (faults.length === 0) continue
  failed++
  console.log([...faults, ...printed.split('\n')].map((line) => `     | ${line}`).join('\n'))
}
process.exit(failed === 0 ? 0 : 1)
