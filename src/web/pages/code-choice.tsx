/** @jsxImportSource preact */
// Code that calls a model, by API and language or client.

import { useState } from 'preact/hooks'
import type { Snippet } from '../catalog/snippets.ts'
import { CodeBlock, CopyButton } from './components.tsx'
import { Field } from './form.tsx'

/** The API and the language or client are chosen. Without scripts all are listed. */
export function CodeChoice({ snippets }: { readonly snippets: readonly Snippet[] }) {
  const [api, setApi] = useState(snippets[0]?.api ?? '')
  const [client, setClient] = useState(snippets[0]?.client ?? '')
  const ofApi = snippets.filter((snippet) => snippet.api === api)
  const shown = ofApi.find((snippet) => snippet.client === client) ?? ofApi[0]
  const options = (values: readonly string[]) => [...new Set(values)].map((value) => ({ value, label: value }))
  return (
    <div class="stack">
      <div class="controls needs-script">
        <Field label="API" value={api} options={options(snippets.map((snippet) => snippet.api))} onChange={setApi} />
        <Field
          label="Language or client"
          value={shown?.client ?? ''}
          options={options(ofApi.map((snippet) => snippet.client))}
          onChange={setClient}
        />
      </div>
      {snippets.map((snippet) => (
        <div
          key={`${snippet.api} ${snippet.client}`}
          class={snippet === shown ? 'stack tight snippet' : 'stack tight snippet without-script'}
          data-client={`${snippet.api}, ${snippet.client}`}
        >
          <h3 class="without-script">
            {snippet.api}, {snippet.client}
          </h3>
          {snippet.install !== '' && (
            <p class="id">
              <code>{snippet.install}</code>
              <CopyButton text={snippet.install} what="install command" />
            </p>
          )}
          <CodeBlock code={snippet.code} what={`code for ${snippet.client}`} />
          <p class="hint">
            Set <code>TOLLGATE_KEY</code> to your API key.{' '}
            <a href={`/docs/${snippet.docs.replace(/\.md$/, '')}`}>More</a> about this API.
          </p>
        </div>
      ))}
    </div>
  )
}
