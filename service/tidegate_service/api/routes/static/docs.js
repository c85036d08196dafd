"use strict";
window.ui = SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#docs",
  deepLinking: true,
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  // The default sends the description to a validator on the internet.
  validatorUrl: null,
});
