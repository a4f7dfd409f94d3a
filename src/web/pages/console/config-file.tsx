/** @jsxImportSource preact */
// What operators declare in the configuration file: providers, models with their prices and routes, and aliases. The
// gateway writes the file after checking it, and each change is in effect at once.

import { useState } from 'preact/hooks'
import { type AnswerOf, type CallOf, callApi } from '../api.ts'
import { Field, type FieldRow, type Values } from '../form.tsx'
import { type Query, useApi } from '../hooks.ts'
import type { Column } from '../table.tsx'
import { actionsColumn, emptyState, hasWords, LongTable, QueryView, Section } from './components.tsx'
import { useViewer } from './context.tsx'
import { FormDialog, useOverlay } from './overlay.tsx'

type ConfigFile = AnswerOf<'getConfigFile'>
type Change = NonNullable<CallOf<'updateConfigFile'>['body']>
type Entry = Readonly<Record<string, unknown>>

const text = (value: unknown): string => (value === undefined || value === null ? '' : String(value))

export interface ConfigFileState {
  /** undefined = not loaded, or the viewer is no operator. */
  readonly entries: ConfigFile | undefined
  readonly query: Query<ConfigFile>
  readonly isWritable: boolean
  addProvider(): void
  editProvider(entry: Entry): void
  removeProvider(id: string, onRemoved: () => void): void
  putProvider(id: string, entry: Entry): Promise<ConfigFile>
  setDisabled(id: string, isDisabled: boolean): void
  /** Without an entry: a new one. */
  editModel(entry: Entry | undefined, onChanged?: () => void): void
  removeModel(id: string): void
  addAlias(): void
  removeAlias(id: string): void
  /** Without a model: to be entered. */
  setPrice(model: string, onChanged?: () => void): void
}

/** What operators declare in the file, and the dialogs that change it. `onChanged`: after a change is in effect. */
export function useConfigFile(onChanged: () => void): ConfigFileState {
  const { isOperator } = useViewer()
  const { open, ask } = useOverlay()
  const query = useApi('getConfigFile', isOperator ? {} : undefined)
  const done = () => {
    query.reload()
    onChanged()
  }
  const send = (change: Change) => callApi('updateConfigFile', { body: { ...change, digest: query.value?.digest } })
  const putProvider = (id: string, { id: _, ...entry }: Entry) => send({ providers: { [id]: entry } })
  const remove = (id: string, change: Change, onRemoved: () => void = () => {}) =>
    ask({
      title: `Remove ${id}?`,
      label: 'Remove',
      cancelLabel: 'Keep',
      intro: 'From the next request on, the gateway no longer uses it. Requests that are running finish.',
      send: () => send(change),
      onDone: () => {
        done()
        onRemoved()
      },
    })
  const openProvider = (entry: Entry | undefined) =>
    open(
      <FormDialog
        title={entry ? `Edit ${text(entry.id)}` : 'Add a provider'}
        label="Save provider"
        initial={entry ? valuesOf(entry) : { dialect: 'openai-chat' }}
        rows={providerRows(entry)}
        send={({ id, ...fields }) => {
          const { api_key: _, ...kept } = entry ?? {}
          return putProvider(text(entry?.id ?? id), { ...kept, ...fields })
        }}
        onDone={done}
      />,
    )
  return {
    entries: query.value,
    query,
    isWritable: query.value?.read_only === null,
    putProvider: async (id, entry) => {
      const changed = await putProvider(id, entry)
      done()
      return changed
    },
    addProvider: () => openProvider(undefined),
    editProvider: openProvider,
    removeProvider: (id, onRemoved) => remove(id, { providers: { [id]: null } }, onRemoved),
    setDisabled: (id, isDisabled) =>
      ask({
        title: `${isDisabled ? 'Disable' : 'Enable'} ${id}?`,
        label: isDisabled ? 'Disable' : 'Enable',
        isDanger: isDisabled,
        intro: isDisabled
          ? 'From the next request on, the gateway does not call it, nor with workspaces’ own keys. Requests that are running finish.'
          : 'From the next request on, the gateway calls it again.',
        send: () => send({ disabled_providers: { [id]: isDisabled } }),
        onDone: done,
      }),
    editModel: (entry, onDone = () => {}) =>
      open(
        <FormDialog
          title={entry ? `Edit ${text(entry.id)}` : 'Add a model'}
          label="Save model"
          initial={entry ? modelValues(entry) : {}}
          rows={modelRows(entry)}
          send={(body) => send({ models: { [text(entry?.id ?? body.id)]: modelEntry(entry, body) } })}
          onDone={() => {
            done()
            onDone()
          }}
        />,
      ),
    removeModel: (id) => remove(id, { models: { [id]: null } }),
    addAlias: () =>
      open(
        <FormDialog
          title="Add an alias"
          label="Save alias"
          rows={[
            {
              name: 'name',
              label: 'Alias',
              hint: 'What callers pass as the model, for example fast',
              isRequired: true,
            },
            { name: 'model', label: 'Model', hint: 'The id of a model, for example acme/large', isRequired: true },
          ]}
          send={({ name, model }) => send({ aliases: { [name]: model } })}
          onDone={done}
        />,
      ),
    removeAlias: (id) => remove(id, { aliases: { [id]: null } }),
    setPrice: (model, onDone = done) => open(<PriceDialog model={model} onDone={onDone} />),
  }
}

/** Of a model without a price in the file. */
function PriceDialog({ model: given, onDone }: { readonly model: string; onDone(): void }) {
  return (
    <FormDialog
      title={given === '' ? 'Set the price of a model' : `Set the price of ${given}`}
      label="Set price"
      intro="In effect from the next request on. It replaces the built-in price, those of service tiers included. If the file has a price for the model, edit the model instead."
      initial={{ model: given }}
      rows={[
        { name: 'model', label: 'Model', isRequired: true, isShown: () => given === '' },
        ...priceRows.map((row) => ({ ...row, ...required(row) })),
      ]}
      send={({ model, input, output, cache_read }) =>
        callApi('putPrice', {
          model: text(model),
          body: { input: text(input), output: text(output), ...(cache_read && { cache_read: text(cache_read) }) },
        })
      }
      onDone={onDone}
    />
  )
}

/** Models, aliases and prices. Declared providers are in the list of providers. */
export function ConfigFileSections({ file }: { readonly file: ConfigFileState }) {
  const { isWritable } = file
  const [model, setModel] = useState('')
  const withActions = (
    columns: readonly Column<Entry>[],
    remove: (id: string) => void,
    edit?: (entry: Entry) => void,
  ) => {
    const actions = actionsColumn<Entry>((entry) => {
      const id = text(entry.id)
      return [
        ...(edit ? [{ label: 'Edit', name: `Edit ${id}`, run: () => edit(entry) }] : []),
        { label: 'Remove', name: `Remove ${id}`, look: 'danger', run: () => remove(id) },
      ]
    })
    return isWritable ? [...columns, actions] : columns
  }
  return (
    <QueryView what="configuration file" query={file.query}>
      {({ path, read_only: readOnly, models, aliases }) => (
        <>
          {readOnly !== null && (
            <p class="hint">
              <code>{path}</code> cannot be changed here: {readOnly}. Change it where it is deployed.
            </p>
          )}
          <Section
            title="Declared models"
            action={isWritable && { label: 'Add model', run: () => file.editModel(undefined) }}
          >
            {models.length > modelsListed && (
              <div class="controls">
                <Field
                  label="Find a model"
                  value={model}
                  attributes={{ type: 'search', placeholder: 'Id or provider' }}
                  onChange={setModel}
                />
              </div>
            )}
            <LongTable
              what="models"
              listed={modelsListed}
              caption="Models in the configuration file"
              columns={withActions(modelColumns, file.removeModel, (entry) => file.editModel(entry))}
              rows={models.filter((entry) => hasWords(`${text(entry.id)} ${routesText(entry)}`, model))}
              keyOf={({ id }) => text(id)}
              empty={emptyState(
                'No models declared',
                'Add a model with its price and routes, or replace a built-in one.',
              )}
            />
          </Section>
          <Section title="Aliases" action={isWritable && { label: 'Add alias', run: file.addAlias }}>
            <LongTable
              what="aliases"
              listed={modelsListed}
              caption="Aliases in the configuration file"
              columns={withActions(aliasColumns, file.removeAlias)}
              rows={Object.entries(aliases).map(([id, target]) => ({ id, model: target }))}
              keyOf={({ id }) => text(id)}
              empty={emptyState('No aliases', 'An alias is another name for a model, which callers can use at once.')}
            />
          </Section>
          <Section title="Prices" action={{ label: 'Set price', run: () => file.setPrice('') }}>
            <p class="hint">
              The price of any model without a price in the file can be set here. Its history is on the page of the
              model; requests keep the price they were charged by.
            </p>
          </Section>
        </>
      )}
    </QueryView>
  )
}

/** So that a file with a thousand models opens at once. */
const modelsListed = 20

const dialects = ['openai-chat', 'openai-responses', 'anthropic-messages', 'gemini', 'bedrock'].map((value) => ({
  value,
  label: value,
}))

const providerRows = (entry: Entry | undefined) =>
  [
    {
      name: 'id',
      label: 'Name',
      hint: 'Lower-case letters, digits and dashes; routes refer to it.',
      isRequired: entry === undefined,
      isShown: () => entry === undefined,
    },
    { name: 'dialect', label: 'API', options: dialects, isRequired: true },
    { name: 'base_url', label: 'Base URL', hint: 'For example https://api.example.com/v1', isRequired: true },
    {
      name: 'api_key',
      label: 'API key',
      kind: 'password',
      hint: entry
        ? 'Leave it empty to keep the key. A changed address needs it again.'
        : 'Stored in a private file of the data folder. It can be replaced, but never read back.',
    },
  ] as const satisfies readonly FieldRow[]

function valuesOf(entry: Entry): Values {
  return { dialect: text(entry.dialect), base_url: text(entry.base_url) }
}

const priceRows = [
  { name: 'input', label: 'Input price', hint: 'USD per million tokens', kind: 'decimal' },
  { name: 'output', label: 'Output price', hint: 'USD per million tokens', kind: 'decimal' },
  { name: 'cache_read', label: 'Cached input price', hint: 'Empty = as input', kind: 'decimal' },
] as const satisfies readonly FieldRow[]

const required = ({ name }: FieldRow) => (name === 'cache_read' ? {} : { isRequired: true })

const modelRows = (entry: Entry | undefined) =>
  [
    {
      name: 'id',
      label: 'Model id',
      hint: 'creator/model, for example acme/large',
      isRequired: entry === undefined,
      isShown: () => entry === undefined,
    },
    { name: 'name', label: 'Display name' },
    {
      name: 'routes',
      label: 'Routes',
      kind: 'lines',
      hint: 'One per line: the provider, a space, and its name for the model. The first ones are preferred.',
      isRequired: true,
    },
    { name: 'context_tokens', label: 'Context window', hint: 'Tokens', kind: 'whole' },
    { name: 'max_output_tokens', label: 'Largest output', hint: 'Tokens', kind: 'whole' },
    ...priceRows,
  ] as const satisfies readonly FieldRow[]

interface RouteEntry extends Entry {
  readonly provider: string
  readonly model: string
}

const routesOf = (entry: Entry | undefined): readonly RouteEntry[] =>
  Array.isArray(entry?.routes) ? (entry.routes as RouteEntry[]) : []
const priceOf = (entry: Entry | undefined): Entry =>
  typeof entry?.price === 'object' && entry.price !== null ? (entry.price as Entry) : {}

function modelValues(entry: Entry): Values {
  const fields = ['name', 'context_tokens', 'max_output_tokens'].map((name) => [name, text(entry[name])])
  const prices = priceRows.map(({ name }) => [name, text(priceOf(entry)[name])])
  const routes = routesOf(entry).map(({ provider, model }) => `${provider} ${model}`)
  return { ...Object.fromEntries([...fields, ...prices]), routes: routes.join('\n') }
}

/** Fields that the form does not have stay as they are. */
function modelEntry(before: Entry | undefined, body: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { id: _, routes, input, output, cache_read, ...fields } = body
  const { id: __, name: ___, context_tokens: ____, max_output_tokens: _____, ...kept } = before ?? {}
  const { cache_read: ______, ...keptPrice } = priceOf(before)
  const price = { ...keptPrice, ...(input !== undefined && { input }), ...(output !== undefined && { output }) }
  const next = (routes as readonly string[]).map((line) => {
    const [provider = '', ...rest] = line.split(/\s+/)
    const model = rest.join(' ')
    return routesOf(before).find((each) => each.provider === provider && each.model === model) ?? { provider, model }
  })
  return {
    ...kept,
    ...fields,
    routes: next,
    ...(Object.keys(price).length > 0 && { price: { ...price, ...(cache_read !== undefined && { cache_read }) } }),
  }
}

const routesText = (entry: Entry) =>
  routesOf(entry)
    .map(({ provider, model }) => `${provider} (${model})`)
    .join(', ')

const modelColumns: readonly Column<Entry>[] = [
  { label: 'Model', show: ({ id }) => <span class="row-name wrap">{text(id)}</span> },
  {
    label: 'Routes',
    show: (entry) => <span class="wrap">{routesText(entry)}</span>,
  },
  {
    label: 'Price per 1M tokens',
    show: (entry) => {
      const { input, output } = priceOf(entry)
      if (entry.price === 'free') return 'free'
      return input === undefined ? 'none in the file' : `$${text(input)} in, $${text(output)} out`
    },
  },
]

const aliasColumns: readonly Column<Entry>[] = [
  { label: 'Alias', show: ({ id }) => <span class="row-name">{text(id)}</span> },
  { label: 'Model', show: ({ model }) => text(model) },
]
