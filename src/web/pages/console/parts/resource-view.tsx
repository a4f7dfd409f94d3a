/** @jsxImportSource preact */
// What a page shows while there is nothing to show: that it loads, why it could not, or what to do first.

import type { ComponentChildren } from 'preact'
import { CopyButton } from '../../shell/copy-button.tsx'
import type { Refusal } from './call-api.ts'

export function Loading({ what }: { readonly what: string }) {
  return (
    <div class="loading" role="status">
      <span class="visually-hidden">Loading {what} …</span>
      <span class="bone" />
      <span class="bone" />
      <span class="bone" />
    </div>
  )
}

export function Refused({ refusal, again }: { readonly refusal: Refusal; again?(): void }) {
  return (
    <div class="warning" role="alert">
      <p>{refusal.message}</p>
      {refusal.requestId !== '' && (
        <p class="hint">
          Request id <code>{refusal.requestId}</code>
        </p>
      )}
      {again && (
        <button type="button" class="button quiet small" onClick={again}>
          Try again
        </button>
      )}
    </div>
  )
}

/** The children say the next step, best as something that can be run. */
export function Empty({ title, children }: { readonly title: string; readonly children: ComponentChildren }) {
  return (
    <section class="blank">
      <h2>{title}</h2>
      {children}
    </section>
  )
}

export function CodeBlock({ code, what }: { readonly code: string; readonly what: string }) {
  return (
    <div class="code-block">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and the keyboard must be able to */}
      <pre tabIndex={0}>
        <code>{code}</code>
      </pre>
      <CopyButton text={code} what={what} label="Copy" />
    </div>
  )
}
