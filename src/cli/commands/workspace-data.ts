// `tollgate workspaces export` and `erase`: all that is kept of one workspace, and the end of whatever in it may belong
// to a person. Both name the workspace by its id: a name may be another's tomorrow.

import { type CommandDefinition, printJson } from '../command.ts'
import { shownAt } from '../json-members.ts'
import { exitCodes, Refusal, usageRefusal } from '../refusal.ts'

/** A million requests are forgotten in well under this. */
const eraseTimeoutMs = 10 * 60_000

const id = { name: 'ID', prefix: 'ws_' } as const

const exportWorkspace: CommandDefinition = {
  words: ['workspaces', 'export'],
  summary: 'prints all that is kept of a workspace, one JSON object per line',
  details: `Every line has a "record": workspace, wallet, project, key, credential, transfer, request or audit. Secrets are not in
it: of keys and provider keys the last four characters are shown. That it was exported is noted in the audit log.`,
  positionals: [id],
  examples: ['tollgate workspaces export ws_… > acme.jsonl'],
  async run({ api, terminal }, input) {
    const pieces = await api.download(`/api/workspaces/${encodeURIComponent(input.positionals[0] ?? '')}/export`)
    if (pieces instanceof Refusal) return pieces
    const decoder = new TextDecoder()
    try {
      for await (const bytes of pieces) terminal.print(decoder.decode(bytes, { stream: true }))
    } catch {
      return new Refusal(exitCodes.failed, 'the gateway broke off; what was printed is not all of it.')
    }
    return undefined
  },
}

const eraseWorkspace: CommandDefinition = {
  words: ['workspaces', 'erase'],
  summary: 'ends the keys of a workspace for good and erases what may belong to a person',
  details: `Erased: the names of the workspace, its projects and keys, the keys themselves and the addresses they were bound to, its
provider keys, its requests. Kept: the balance, every charge and top-up with its reference, sums by the hour, and the
audit log, which holds ids. It cannot be undone; export first. It may be repeated, and should be after what ran
meanwhile has ended. Backups made before still hold it all.`,
  positionals: [id],
  options: { yes: { help: 'really; without it nothing is erased' } },
  examples: ['tollgate workspaces erase ws_… --yes'],
  async run(context, input) {
    const workspaceId = input.positionals[0] ?? ''
    if (!input.isSet('yes')) {
      const attempt = `tollgate workspaces erase ${workspaceId} --yes`
      return usageRefusal('nothing was erased: this ends its keys and cannot be undone.', attempt)
    }
    const erased = await context.api.call({
      method: 'POST',
      path: `/api/workspaces/${encodeURIComponent(workspaceId)}/erase`,
      body: { confirm: 'erase' },
      timeoutMs: eraseTimeoutMs,
    })
    if (erased instanceof Refusal) return erased
    if (context.json) return printJson(context, erased)
    const counts = ['keys', 'credentials', 'requests'].map((name) => `${shownAt(erased, name)} ${name}`).join(', ')
    context.terminal.print(`${workspaceId} is erased: ${counts}. Its charges and its balance stay.\n`)
    return undefined
  },
}

export const workspaceDataCommands: readonly CommandDefinition[] = [exportWorkspace, eraseWorkspace]
