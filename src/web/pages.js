// Lets the server import the pages. Plain JavaScript with its types beside it, because the pages are checked against the
// browser's types, which must not leak into the server's: they change Response, Worker and streams.

export { renderDocument } from './pages/document.tsx'
