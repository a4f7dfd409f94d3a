// `tollgate credentials`: a workspace's own keys at providers. A key comes from a file, the standard input or a hidden
// prompt, never from an argument, where the shell's history and the process list would keep it.

import { readFile } from 'node:fs/promises'
import { type CommandContext, type CommandDefinition, printJson } from '../command.ts'
import { findWorkspace } from '../find-things.ts'
import { shownAt, textAt } from '../json-members.ts'
import { exitCodes, Refusal, usageRefusal } from '../refusal.ts'
import { shownTime } from '../shown-values.ts'
import { cleanText, renderTable } from '../table.ts'

const workspace = { value: 'ID', help: 'which workspace; may be left out if there is only one' }

const listCredentials: CommandDefinition = {
  words: ['credentials', 'list'],
  isDefault: true,
  summary: "lists a workspace's own provider keys, by their last four characters",
  options: { workspace },
  examples: ['tollgate credentials'],
  async run(context, input) {
    const id = await findWorkspace(context.api, input.text('workspace'))
    if (id instanceof Refusal) return id
    const list = await context.api.call({ path: `/api/workspaces/${encodeURIComponent(id)}/credentials` })
    if (list instanceof Refusal) return list
    if (context.json) return printJson(context, list)
    const data = Array.isArray(list.data) ? list.data : []
    const columns = ['PROVIDER', 'KEY', 'BASE URL', 'STORED (UTC)'].map((title) => ({ title }))
    const rows = data.map((each) => [
      shownAt(each, 'provider'),
      `…${textAt(each, 'last4') ?? ''}`,
      shownAt(each, 'base_url'),
      shownTime(textAt(each, 'updated_at')),
    ])
    context.terminal.print(renderTable(columns, rows, context.terminal))
    return undefined
  },
}

const putCredential: CommandDefinition = {
  words: ['credentials', 'put'],
  summary: "stores or replaces a workspace's own key for a provider",
  details:
    'The key is read from a file or the standard input, or asked for on a terminal. It can never be read back. For a host that exchanges its credential for tokens (google-vertex) it is the JSON key file of a service account.',
  positionals: [{ name: 'PROVIDER' }],
  options: {
    workspace,
    file: { value: 'FILE', help: 'read the key from this file' },
    'base-url': { value: 'URL', help: "where to call instead of the provider's own address" },
  },
  examples: [
    'tollgate credentials put acme < acme.key',
    'tollgate credentials put google-vertex --file key.json',
    'tollgate credentials put acme',
  ],
  async run(context, input) {
    const provider = input.positionals[0] ?? ''
    const id = await findWorkspace(context.api, input.text('workspace'))
    if (id instanceof Refusal) return id
    const key = await readKey(context, provider, input.text('file'))
    if (key instanceof Refusal) return key
    const baseUrl = input.text('base-url')
    const stored = await context.api.call({
      method: 'PUT',
      path: `/api/workspaces/${encodeURIComponent(id)}/credentials/${encodeURIComponent(provider)}`,
      body: { api_key: key, ...(baseUrl === undefined ? {} : { base_url: baseUrl }) },
    })
    if (stored instanceof Refusal) return stored
    if (context.json) return printJson(context, stored)
    context.terminal.print(`Key …${textAt(stored, 'last4') ?? ''} for ${cleanText(provider)} is stored in ${id}.\n`)
    return undefined
  },
}

async function readKey(
  { terminal }: CommandContext,
  provider: string,
  file: string | undefined,
): Promise<string | Refusal> {
  const next = `tollgate credentials put ${cleanText(provider)} --file FILE`
  const text =
    file !== undefined
      ? await readKeyFile(file, next)
      : terminal.isInteractive
        ? await terminal.askSecret(`Key for ${cleanText(provider)} (hidden): `)
        : await terminal.readInput()
  if (text instanceof Refusal) return text
  const key = text.trim()
  if (key === '') return usageRefusal('no key was given.', next)
  // A prompt takes one line, and the first one of a pasted key file is this.
  return key === '{' ? usageRefusal('a key of several lines cannot be typed in.', next) : key
}

async function readKeyFile(file: string, next: string): Promise<string | Refusal> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : ''
    return usageRefusal(`${cleanText(file)} cannot be read${code}.`, next)
  }
}

const deleteCredential: CommandDefinition = {
  words: ['credentials', 'delete'],
  summary: "deletes a workspace's own key for a provider",
  positionals: [{ name: 'PROVIDER' }],
  options: { workspace, yes: { help: 'do not ask, also on a terminal' } },
  examples: ['tollgate credentials delete acme --yes'],
  async run(context, input) {
    const provider = input.positionals[0] ?? ''
    const id = await findWorkspace(context.api, input.text('workspace'))
    if (id instanceof Refusal) return id
    if (context.terminal.isInteractive && !input.isSet('yes')) {
      const answer = await context.terminal.ask(`Delete the key for ${cleanText(provider)} of ${id}? [y/N] `)
      if (!/^y(es)?$/i.test(answer.trim())) return new Refusal(exitCodes.failed, 'nothing was changed.', '--yes')
    }
    const path = `/api/workspaces/${encodeURIComponent(id)}/credentials/${encodeURIComponent(provider)}`
    const done = await context.api.call({ method: 'DELETE', path })
    if (done instanceof Refusal) return done
    if (context.json) return printJson(context, { deleted: provider })
    context.terminal.print(`The key for ${cleanText(provider)} is deleted from ${id}.\n`)
    return undefined
  },
}

export const credentialCommands: readonly CommandDefinition[] = [listCredentials, putCredential, deleteCredential]
