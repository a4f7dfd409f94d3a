// Agents that are small enough to be fetched by a test, set up by `tollgate connect`: each reads a file through the
// gateway under its key, one of them also with a person's sign-in, and `--undo` restores its settings. `npm run agents` runs the
// others, and with `-- --sign-in` all of them with a sign-in.

import { expect, test } from 'bun:test'
import { fetchAgent, realAgents, tryConnect } from './real-agents.ts'
import { trySignedIn } from './signed-in-agents.ts'

/** Installed within seconds, below 110 MB. */
const small = ['gemini', 'qwen', 'continue']
/** They sign in through the same local proxy. */
const signedIn = 'continue'

for (const agent of realAgents.filter(({ id }) => small.includes(id))) {
  const fetched = await fetchAgent(agent)
  const name = `${agent.id} ${agent.version}`
  if ('reason' in fetched) test.skip(`${name}: ${fetched.reason}`, () => {})
  else {
    test(`connect ${name}: it reads a file through the gateway, and undo restores its settings`, async () => {
      const { faults, printed } = await tryConnect(agent, fetched.folder)
      expect([faults, faults.length > 0 ? printed : '']).toEqual([[], ''])
    })
    if (agent.id !== signedIn) continue
    test(`${name} with a sign-in: works through the local proxy while its token expires, and says when it is over`, async () => {
      const { faults, printed } = await trySignedIn(agent, fetched.folder)
      expect([faults, faults.length > 0 ? printed : '']).toEqual([[], ''])
    })
  }
}
